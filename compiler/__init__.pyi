from . import golden as golden, ir as ir, quantise as quantise, reference as reference
from .compile import Compiled as Compiled, compile_model as compile_model, compile_with_report as compile_with_report
from .dynamic_dimension import DynamicDimension as DynamicDimension, dynamic_batches as dynamic_batches
from .emission.objects.desk import Desk as Desk
from .emission.objects.object_store import ObjectStore as ObjectStore, compiler_digest as compiler_digest
from .emission.objects.workers import cpus as cpus
from .emission.program.semaphores import WAITS as WAITS
from .frontend import float_ends as float_ends, import_model as import_model
from .frontend.filled_rows import LAST_ROW as LAST_ROW
from .frontend.load import load as load, read_model as read_model
from .frontend.operator_forms import OPERATOR_FORMS as OPERATOR_FORMS
from .frontend.ops.recurrent import recurrent_amid as recurrent_amid
from .frontend.problems import (
    OpenDimension as OpenDimension,
    QuantisedForm as QuantisedForm,
    UnsupportedModel as UnsupportedModel,
    causes as causes,
    quantised_form as quantised_form,
)
from .frontend.refused import refusal_reasons as refusal_reasons
from .golden import golden_outputs as golden_outputs
from .ir import (
    CompileError as CompileError,
    Conv as Conv,
    Graph as Graph,
    Host as Host,
    Operation as Operation,
    Port as Port,
    Reshape as Reshape,
    Tensor as Tensor,
)
from .length_padding import padding_problem as padding_problem
from .model_operations import ATTENTION as ATTENTION, ModelOperation as ModelOperation, operations_of as operations_of
from .pipeline import (
    blank as blank,
    build as build,
    decide as decide,
    emit as emit,
    fill as fill,
    lowered as lowered,
    settle as settle,
)
from .plan.layers.origin import even_pieces as even_pieces
from .plan.memory.least_packing import least_packing as least_packing
from .plan.options import (
    ALL_LV2 as ALL_LV2,
    OBJECTIVES as OBJECTIVES,
    ORDERS as ORDERS,
    ORDERS_BY_RUNS as ORDERS_BY_RUNS,
    STRATEGIES as STRATEGIES,
    Options as Options,
)
from .plan.order.dimensions import (
    CHANNELS as CHANNELS,
    ONE_PIXEL as ONE_PIXEL,
    RULES as RULES,
    Box4 as Box4,
    Dimension as Dimension,
    Extents as Extents,
    OperandNeed as OperandNeed,
    SlidingWindow as SlidingWindow,
    SplitRule as SplitRule,
)
from .plan.order.graph import OperatorNode as OperatorNode, Order as Order, OrderGraph as OrderGraph, members as members
from .plan.order.greedy import greedy_order as greedy_order, least_peak_order as least_peak_order
from .plan.order.model import order_model as order_model
from .plan.order.orders import (
    completions as completions,
    count as count,
    every_order as every_order,
    random_order as random_order,
)
from .plan.order.report import LowerBound as LowerBound, OrderReport as OrderReport, SubgraphReport as SubgraphReport
from .plan.order.residency import (
    peak_bytes as peak_bytes,
    spills as spills,
    threshold as threshold,
    total_bytes as total_bytes,
)
from .plan.order.search import SearchLimits as SearchLimits, search_order as search_order
from .plan.order.subgraphs import key_nodes as key_nodes
from .plan.plan import Plan as Plan
from .plan.plan_error import PlanError as PlanError
from .quantise import Feed as Feed
from .reference import run_all as run_all
from .search.lv2_claim import CLAIM_LOSS as CLAIM_LOSS, Lv2Claim as Lv2Claim
from .search.memory_study import MemoryStudy as MemoryStudy, OrderMemory as OrderMemory, memory_study as memory_study
from .search.programs import MeasuredBuild as MeasuredBuild, build_timed as build_timed
from .search.ranges import Told as Told, compile_range as compile_range
from .states import ModelState as ModelState, ModelStates as ModelStates, states_of as states_of
