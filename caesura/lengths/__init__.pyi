from .bucket_kernels import make_bucket as make_bucket
from .dynamic_model import LADDER as LADDER, DynamicModel as DynamicModel, dynamic as dynamic
from .kernel_source import dynamic_ports as dynamic_ports, read_kernels as read_kernels, source_of as source_of
from .operation_demands import OPERATORS as OPERATORS, OperationDemands as OperationDemands
from .operation_model import (
    OperationInference as OperationInference,
    OperationModel as OperationModel,
    by_operation as by_operation,
    is_of_operations as is_of_operations,
)
