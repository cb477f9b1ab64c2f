"""Fixtures of the tests of trees."""

import pytest


@pytest.fixture(params=["fmm", "bh"])
def method(request):
    return request.param
