from .dynamic_model import DynamicModel as DynamicModel
from .open_dynamic import LADDER as LADDER
