from .bench import bench_table as bench_table
from .progress import Progress as Progress
from .tables import ColumnTable as ColumnTable, json_text as json_text, table_of as table_of
from .terminal import line as line
from .timeline import preemptive_spans as preemptive_spans
