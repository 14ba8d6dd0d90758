"""pb.scipy: what is there, and that it is SciPy's where nothing else is needed."""

import subprocess
import sys

import pytest
import scipy.special

import pullback as pb
import pullback.scipy.linalg


@pytest.mark.parametrize("part", pb.scipy.__all__)
def test_every_part_lends_what_it_does_not_define(part):
    namespace = getattr(pb.scipy, part)
    original = getattr(scipy, part)
    assert set(dir(original)) <= set(dir(namespace))


def test_ufuncs_are_scipys_own():
    assert pb.scipy.special.gammaln is scipy.special.gammaln


def test_a_name_nobody_has_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nosuch"):
        _ = pullback.scipy.linalg.nosuch
    with pytest.raises(AttributeError, match="special"):
        _ = pb.scipy.nosuch


def test_importing_the_package_imports_no_scipy():
    program = "import sys, pullback as pb, pullback.rules; pb.scipy; assert not any(m.split('.')[0] == 'scipy' for m in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_linear_algebra_does_not_wait_for_signals_and_statistics():
    program = "import sys, pullback.scipy.linalg; assert not {'scipy.signal', 'scipy.stats'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
