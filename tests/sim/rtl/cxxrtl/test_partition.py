import pytest

from sim.rtl.cxxrtl.partition import PartitionError, demangled, register_table


@pytest.mark.parametrize(
    ("member", "name"),
    [
        ("p_host_2e_rsp__valid", "host.rsp_valid"),
        ("p_host_2e_axil____awaddr", "host.axil__awaddr"),
        ("p_dram_2e___now", "dram._now"),
        ("p_dram_2e_write_24_18", "dram.write$18"),
        ("p_dram_2e__24_signal_24_9", "dram.$signal$9"),
        ("i_flatten_5c_soc_2e__5c_lv2_2e__24_19", r"$flatten\soc.\lv2.$19"),
    ],
)
def test_names_are_those_of_amaranth(member, name):
    assert demangled(member) == name


def test_the_table_lists_every_register():
    header = (
        "struct p_sim__top {\n\twire<1> p_a_2e_b;\n\tvalue<8> p_c;\n\twire<66> p_d__e {0u};\n\twire<3> i_x_5c_y;\n};\n"
    )
    table = register_table(header)
    assert r'"1 a.b\n"' in table and r'"66 d_e\n"' in table and r'"3 $x\\y\n"' in table and "p_c" not in table
    assert "offsetof(Top, p_d__e), 66" in table


def test_other_headers_are_refused():
    with pytest.raises(PartitionError, match="wire<N>"):
        register_table("struct p_sim__top {\n};\n")
