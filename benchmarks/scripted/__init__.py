"""The platform with an engine that answers by a script, for benchmarks and the soak.

Everything but the model is real: the server speaks the part of vLLM's HTTP interface that the
platform uses, so the real clients, workers and publications run against it.
"""
