"""Requests about catalogs and their namespaces."""

from __future__ import annotations

from collections.abc import Mapping

from iceberg_pyspark.spark.bridge.protocol.messages import Request, Response


class CatalogOpen(Request, frozen=True, kw_only=True):
    """The request to open a catalog that a session names."""

    session: str
    name: str
    options: Mapping[str, str]


class CatalogHandle(Response, frozen=True, kw_only=True):
    """The catalog's handle in later requests, and what Spark asks of the catalog itself."""

    handle: str
    default_namespace: tuple[str, ...]
    """The namespace that is current after `USE <catalog>`."""

    release: str
    """The name and version of this package."""


class CatalogRequest(Request, frozen=True, kw_only=True):
    """A request to an open catalog."""

    catalog: str


class NamespaceRequest(CatalogRequest, frozen=True, kw_only=True):
    """A request about a namespace."""

    namespace: tuple[str, ...]


class TableRequest(NamespaceRequest, frozen=True, kw_only=True):
    """A request about a table."""

    name: str


class NamespacesList(NamespaceRequest, frozen=True, kw_only=True):
    """The request to list the namespaces in a namespace."""


class Namespaces(Response, frozen=True, kw_only=True):
    """Namespaces, each as a tuple of levels."""

    namespaces: tuple[tuple[str, ...], ...]


class NamespaceExists(NamespaceRequest, frozen=True, kw_only=True):
    """The request to check whether a namespace exists."""


class Existence(Response, frozen=True, kw_only=True):
    """Whether a namespace or a table exists."""

    exists: bool


class NamespaceLoad(NamespaceRequest, frozen=True, kw_only=True):
    """The request for the properties of a namespace."""


class NamespaceProperties(Response, frozen=True, kw_only=True):
    """The properties of a namespace."""

    properties: Mapping[str, str]


class NamespaceCreate(NamespaceRequest, frozen=True, kw_only=True):
    """The request of CREATE NAMESPACE."""

    properties: Mapping[str, str]


class NamespaceAlter(NamespaceRequest, frozen=True, kw_only=True):
    """The request of ALTER NAMESPACE."""

    updates: Mapping[str, str]
    removals: tuple[str, ...]


class NamespaceDrop(NamespaceRequest, frozen=True, kw_only=True):
    """The request of DROP NAMESPACE."""

    cascade: bool
