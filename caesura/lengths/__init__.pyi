from .dynamic_model import LADDER as LADDER, DynamicModel as DynamicModel, dynamic as dynamic
from .kernel_source import read_kernels as read_kernels
