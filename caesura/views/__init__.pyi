from .bench import bench_table as bench_table
from .contents import (
    code_fields as code_fields,
    graph_fields as graph_fields,
    image_fields as image_fields,
    listing as listing,
    params_fields as params_fields,
    point_fields as point_fields,
    points_summary as points_summary,
    points_table as points_table,
    show_graph as show_graph,
    show_image as show_image,
    show_params as show_params,
)
from .live import LiveView as LiveView
from .page import label as label, write_page as write_page
from .pages import (
    write_bench_page as write_bench_page,
    write_diff_page as write_diff_page,
    write_fpga_page as write_fpga_page,
    write_memory_page as write_memory_page,
    write_run_page as write_run_page,
    write_scenario_page as write_scenario_page,
)
from .progress import Progress as Progress, compiling as compiling
from .run_report import RunReport as RunReport, profile_table as profile_table, shares as shares
from .tables import (
    Column as Column,
    ColumnTable as ColumnTable,
    escaped as escaped,
    json_text as json_text,
    percent as percent,
    shown as shown,
    table_of as table_of,
    to_csv as to_csv,
)
from .terminal import complain as complain, line as line, say as say, tell as tell, width as width, write as write
from .timeline import job_counters as job_counters, preemptive_spans as preemptive_spans, run_spans as run_spans
