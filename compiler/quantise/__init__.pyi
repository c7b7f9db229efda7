from .quantisation import prepared as prepared, quantise as quantise
from .step_feeds import Feed as Feed, StepFeeds as StepFeeds, StepModel as StepModel
