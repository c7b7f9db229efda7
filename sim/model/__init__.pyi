from .agenda import Agenda as Agenda
from .bus import ModelBus as ModelBus
from .stretched import StretchedBus as StretchedBus
