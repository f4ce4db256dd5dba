"""Reproducible generators of documents, queries and transformations: equal seeds give equal output.

documents.py        documents that follow a DTD
paths.py            random walks down the element graph of a DTD
queries.py          path queries with predicates and nested paths, built from walks
transformations.py  for-where-return transformations, built from walks
stock.py            the flat workload: stock quotes and range subscriptions
profile.py          which attributes and values occur; literals.py writes them in queries
draw.py             draws distinct items
error.py            errors of parameters
"""

from tamis.model.dtd import Dtd
from tamis.workload.documents import DocumentOptions, generate_documents
from tamis.workload.profile import Profile
from tamis.workload.queries import Mix, QueryOptions, generate_queries
from tamis.workload.stock import StockOptions, stock_messages, stock_subscriptions
from tamis.workload.transformations import TransformationOptions, generate_transformations

__all__ = [
    "DocumentOptions",
    "Dtd",
    "Mix",
    "Profile",
    "QueryOptions",
    "StockOptions",
    "TransformationOptions",
    "generate_documents",
    "generate_queries",
    "generate_transformations",
    "stock_messages",
    "stock_subscriptions",
]
