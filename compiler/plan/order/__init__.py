"""**Order search**: in which order the operators of a model are issued, whatever compiles them.

The rooms, in the order of the method's steps: ``subgraphs`` cuts the graph at key nodes, ``orders`` counts and
enumerates, ``search`` and ``mcts`` look for a good one by whatever price they are given, ``model`` does all of it for a
whole graph. ``greedy`` is what a search is measured by; so is ``benchmarks/order_search``, which prices orders and
bounds them without a program.
"""
