from . import flat_form as flat_form
from .flat_form import (
    DTYPES as DTYPES,
    HEADER as HEADER,
    MOST_AXES as MOST_AXES,
    PORT as PORT,
    RELOCATION as RELOCATION,
    flat as flat,
)
from .image import (
    MAGIC as MAGIC,
    VERSION as VERSION,
    CancelPoint as CancelPoint,
    Image as Image,
    ImageError as ImageError,
    ImageMeta as ImageMeta,
    JobInfo as JobInfo,
    LayerInfo as LayerInfo,
    LiveRange as LiveRange,
    PortInfo as PortInfo,
    Relocation as Relocation,
    StepInfo as StepInfo,
    TensorInfo as TensorInfo,
    meta_to_dict as meta_to_dict,
)
from .kernel_archive import (
    KernelArchive as KernelArchive,
    all_lengths as all_lengths,
    attributes_of as attributes_of,
)
from .kernel_attributes import (
    LARGEST as LARGEST,
    AttributeProblem as AttributeProblem,
    Class1Value as Class1Value,
    KernelAttributes as KernelAttributes,
    ValueRange as ValueRange,
    check_class_2 as check_class_2,
    class_1_key as class_1_key,
)
from .numbers import (
    NumberProblem as NumberProblem,
    ParameterInfo as ParameterInfo,
    parameter_values as parameter_values,
)
from .range_image import RangeImage as RangeImage, Stretch as Stretch
from .windows import WindowWeights as WindowWeights, window_weights as window_weights
