"""**Order search**: in which order the operators of a model are issued, whatever compiles them.

The rooms, in the order of the method's steps: ``split`` cuts operators that are too large, ``subgraphs`` cuts the graph
at key nodes, ``orders`` counts and enumerates, ``price`` says what an order costs, ``search`` and ``mcts`` look for a
good one, ``model`` does all of it for a whole graph. ``greedy`` and ``lower_bound`` are what a search is measured by.
"""
