import time, pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from small_campaign import make_campaign, judge_all, make_assessor
from judging.models import Run
from analytics.models import Computation
from analytics.services.recomputation import recompute
from touchstone.models import User
@pytest.mark.django_db
def test_scale(tmp_path):
    c = make_campaign(tmp_path)
    judge_all(c, [make_assessor(c,"ann"), make_assessor(c,"ben")])
    base = recompute(campaign=c)
    f = c.collection.runs.first().rankings.name
    Run.objects.bulk_create([Run(collection=c.collection, run_id=f"r{n:03d}", rankings=f, n_topics=3, n_lines=30) for n in range(97)])
    comps=[]
    for k in range(4):
        d={x.name:getattr(base,x.name) for x in base._meta.fields if x.name not in("id","created_at")}
        comp=Computation.objects.create(**{**d,"campaign":c}); comps.append(comp)
        with connection.cursor() as cur:
            cur.execute("""INSERT INTO analytics_estimate (computation_id, run_id, run_b_id, measure, method, value, standard_error, low, high, p_value, degrees_of_freedom, components, n, sources, refusal, warning, topics_refusal)
              SELECT %s, a.id, NULL, m, me, random(), .1, 0, 1, NULL, 10, '{}', 50, '[]', '', '', '' FROM judging_run a, unnest(array['DCG@10','P@10','RBP@20','nDCG@10','AP@10']) m, unnest(array['naive','corrected','matrix-inverse']) me WHERE a.collection_id=%s""",[comp.pk,c.collection_id])
            cur.execute("""INSERT INTO analytics_estimate (computation_id, run_id, run_b_id, measure, method, value, standard_error, low, high, p_value, degrees_of_freedom, components, n, sources, refusal, warning, topics_refusal)
              SELECT %s, a.id, b.id, m, me, random()-.5, .1, -1, 1, CASE WHEN me='corrected' THEN random() END, 10, '{}', 50, '[]', '', '', '' FROM judging_run a, judging_run b, unnest(array['DCG@10','P@10','RBP@20','nDCG@10','AP@10']) m, unnest(array['naive','corrected','matrix-inverse']) me WHERE a.collection_id=%s AND b.collection_id=%s AND a.id<b.id""",[comp.pk,c.collection_id,c.collection_id])
    with connection.cursor() as cur: cur.execute("SET CONSTRAINTS ALL IMMEDIATE"); cur.execute("CREATE INDEX zz ON analytics_estimate (computation_id, measure, method, id)"); cur.execute("ANALYZE")
    print("rows", comps[-1].estimates.count())
    u=User.objects.create(username="rhea",role="researcher"); cl=Client(); cl.force_login(u)
    base=f"/api/v1/campaigns/{c.pk}/"
    for path in ["estimates","estimates?pairs=true&measure=P@10&method=corrected","estimates?run=r050&page_size=200","estimates?run=r050&run_b=r060","comparisons?measure=P@10","comparisons?measure=P@10&page_size=200","comparison?run=r001&against=r090","ranking","plots/forest?format=csv","plots/pairs?format=csv","measures","confusions","computations"]:
        ts=[]
        for _ in range(4):
            with CaptureQueriesContext(connection) as q:
                t=time.perf_counter(); r=cl.get(base+path); ts.append(time.perf_counter()-t)
        assert r.status_code==200,(path,r.content[:300])
        worst=max(q.captured_queries,key=lambda x: float(x["time"]))
        print(f"{path:60} {min(ts)*1000:7.0f} ms  {len(q)} statements; slowest {worst['time']} {worst['sql'][:150] if float(worst['time'])>.02 else ''}")
    # walk to the last page
    url=base+"estimates?page_size=200"; n=0; t=time.perf_counter(); ts=[]
    while url and n<60:
        a=time.perf_counter(); r=cl.get(url).json(); ts.append(time.perf_counter()-a); url=r["next"]; n+=1
    print("pages",n,"mean",sum(ts)/len(ts),"max",max(ts), "last", ts[-3:])
    with connection.cursor() as cur:
        cur.execute("EXPLAIN ANALYZE SELECT * FROM analytics_estimate WHERE computation_id=%s ORDER BY measure, method, id LIMIT 51",[comps[-1].pk]); print("\n".join(r[0] for r in cur.fetchall()))
        cur.execute("EXPLAIN ANALYZE SELECT id, p_value FROM analytics_estimate WHERE computation_id=%s AND measure='P@10' AND method='corrected' AND run_b_id IS NOT NULL AND p_value IS NOT NULL ORDER BY id",[comps[-1].pk]); print("\n".join(r[0] for r in cur.fetchall()))
