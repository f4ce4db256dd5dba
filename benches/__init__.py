"""Measurements that `make bench` runs: workloads as data, and the code that measures them."""
