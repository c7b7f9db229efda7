from .dynamic_model import LADDER as LADDER, DynamicModel as DynamicModel
