import pytest, json
from pathlib import Path
from small_release import judged_campaign, release_of, unpacked
from analytics.services.recomputation import recompute
from analytics.releases.verify import verify
pytestmark = pytest.mark.django_db
V = {"plain":{}, "pareto": {"selection":"pareto"}, "two": {"budget":24,"top_up":34,"audited":26}, "all": {"budget":42,"audited":42}, "noaudit":{"audited":0},"few":{"audited":11}, "nogold":{"gold":False,"checks":0.0}, "incomplete":{"complete":False}}
@pytest.mark.parametrize("name", V)
def test_it(tmp_path, name):
    c = judged_campaign(tmp_path, **V[name])
    made = recompute(campaign=c)
    folder = unpacked(release_of(c), tmp_path/'rel')
    p = folder/'estimates.json'
    e = json.loads(p.read_text())
    e['seed'] = made.last_judgment_id
    p.write_text(json.dumps(e))
    r = verify(folder)
    print(name, dict(r.same), dict(r.not_recomputed)); print(*r.different[:12], len(r.different), sep="\n")
