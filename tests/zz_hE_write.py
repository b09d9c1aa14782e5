import nbformat, time
import pytest
import sys
sys.path[:0]=["/work/main/tests"]
from live import stack, key_of
from test_examples import execute, EXAMPLES, said
def write(name, nb):
    for cell in nb.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type=="code":
            for o in cell.outputs:
                pass
    nb.metadata={"kernelspec":{"display_name":"Python 3","language":"python","name":"python3"},"language_info":{"name":"python"}}
    nbformat.write(nb, EXAMPLES/name)
    print(name, *said(nb), sep="\n")
@pytest.mark.django_db(transaction=True)
def test_all(child_environment, tmp_path, monkeypatch):
    t=time.time(); write("compare_two_runs.ipynb", execute("compare_two_runs.ipynb", tmp_path, monkeypatch)); print("SECONDS", time.time()-t)
    keys = {"TOUCHSTONE_KEY": key_of("mara", "manager"), "TOUCHSTONE_MACHINE_KEY": key_of("bob"), "TOUCHSTONE_GOLD_KEY": key_of("greta")}
    with stack(child_environment) as address:
        t=time.time(); write("judge_with_a_machine.ipynb", execute("judge_with_a_machine.ipynb", tmp_path, monkeypatch, TOUCHSTONE_ADDRESS=address, **keys)); print("SECONDS", time.time()-t)
    t=time.time(); write("evaluate_on_a_release.ipynb", execute("evaluate_on_a_release.ipynb", tmp_path, monkeypatch)); print("SECONDS", time.time()-t)
