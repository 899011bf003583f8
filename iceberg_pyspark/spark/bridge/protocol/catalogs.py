"""Questions about catalogs and their namespaces."""

from __future__ import annotations

from collections.abc import Mapping

from iceberg_pyspark.spark.bridge.protocol.messages import Answer, Question


class CatalogOpen(Question, frozen=True, kw_only=True):
    """The request to open a catalog that a session names."""

    session: str
    name: str
    options: Mapping[str, str]


class OpenedCatalog(Answer, frozen=True, kw_only=True):
    """The catalog's handle in later questions."""

    handle: str


class CatalogQuestion(Question, frozen=True, kw_only=True):
    """A question to an open catalog."""

    catalog: str


class NamespaceQuestion(CatalogQuestion, frozen=True, kw_only=True):
    """A question about a namespace."""

    namespace: tuple[str, ...]


class TableQuestion(NamespaceQuestion, frozen=True, kw_only=True):
    """A question about a table."""

    name: str


class NamespacesList(NamespaceQuestion, frozen=True, kw_only=True):
    """The request to list the namespaces in a namespace."""


class Namespaces(Answer, frozen=True, kw_only=True):
    """Namespaces, each as a tuple of levels."""

    namespaces: tuple[tuple[str, ...], ...]


class NamespaceExists(NamespaceQuestion, frozen=True, kw_only=True):
    """The question whether a namespace exists."""


class Existence(Answer, frozen=True, kw_only=True):
    """Whether a namespace or a table exists."""

    exists: bool


class NamespaceLoad(NamespaceQuestion, frozen=True, kw_only=True):
    """The request for the properties of a namespace."""


class NamespaceProperties(Answer, frozen=True, kw_only=True):
    """The properties of a namespace."""

    properties: Mapping[str, str]


class NamespaceCreate(NamespaceQuestion, frozen=True, kw_only=True):
    """The request of CREATE NAMESPACE."""

    properties: Mapping[str, str]


class NamespaceAlter(NamespaceQuestion, frozen=True, kw_only=True):
    """The request of ALTER NAMESPACE."""

    updates: Mapping[str, str]
    removals: tuple[str, ...]


class NamespaceDrop(NamespaceQuestion, frozen=True, kw_only=True):
    """The request of DROP NAMESPACE."""

    cascade: bool
