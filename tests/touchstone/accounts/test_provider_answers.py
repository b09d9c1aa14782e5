"""What the OpenID provider answers is believed only if all of it is right; each check, taken out, lets somebody in."""

import base64
import json
import time

import pytest
from authlib.oidc.core import CodeIDToken
from django.contrib.sessions.models import Session
from django.core import signing
from django.test import Client
from joserfc import jwt
from openid_provider import BACK, answer_of, begin, log_in

from touchstone import id_tokens, openid, sign_on_pages
from touchstone.links import invite
from touchstone.models import AccountLink, Event, Identity, User

pytestmark = pytest.mark.django_db
NOT_VALID = "The answer of your company’s log-in is not valid."
NONE = ["RS256", "none"]


@pytest.fixture(autouse=True)
def ann(provider, settings):
    """Ann is invited as a manager, and her company vouches for her address."""
    invite(role="manager", email="ann@example.org", actor=None)
    provider.know("s-ann", email="ann@example.org", email_verified=True, name="Ann Example")


def tables():
    """Return all that a log-in could change."""
    found = [list(model.objects.order_by("pk").values()) for model in (User, Identity, AccountLink, Event)]
    return [*found, list(Session.objects.order_by("pk").values())]


def said(answer):
    return " ".join(answer.content.decode().split())


def is_in(client):
    return client.get("/account/").status_code == 200


def without(name):
    """Return the demands on claims without one of them."""
    demands = id_tokens.claims_options()
    return lambda: {claim: demand for claim, demand in demands.items() if claim != name}


def unverified(text, key, registry=None):
    header, claims, _ = text.split(".")
    parts = [json.loads(base64.urlsafe_b64decode(part + "==")) for part in (header, claims)]
    return jwt.Token(*parts)


# What is wrong, as the provider's lies; and the check whose absence lets it in.
ATTACKS = {
    "issuer": (
        lambda client_id: {"claims": {"iss": "https://other.example"}},
        lambda patch: patch(id_tokens, "claims_options", without("iss")),
    ),
    "issuer of the metadata": (
        lambda client_id: {"metadata": {"issuer": "https://other.example"}},
        lambda patch: patch(openid, "is_issuer", lambda name: True),
    ),
    "audience": (
        lambda client_id: {"claims": {"aud": ["another-client"], "azp": client_id}},
        lambda patch: patch(id_tokens, "claims_options", without("aud")),
    ),
    "authorized party": (
        lambda client_id: {"claims": {"aud": [client_id, "another-client"], "azp": "another-client"}},
        lambda patch: patch(CodeIDToken, "validate_azp", lambda self: None),
    ),
    "nonce": (
        lambda client_id: {"claims": {"nonce": "of another log-in"}},
        lambda patch: patch(CodeIDToken, "validate_nonce", lambda self: None),
    ),
    "no nonce": (
        lambda client_id: {"claims": {"nonce": None}},
        lambda patch: patch(CodeIDToken, "validate_nonce", lambda self: None),
    ),
    "expiry": (
        lambda client_id: {"claims": {"iat": int(time.time()) - 7200, "exp": int(time.time()) - 3600}},
        lambda patch: patch(id_tokens, "LEEWAY", 10**6),
    ),
    "time of issue": (
        lambda client_id: {"claims": {"iat": int(time.time()) + 3600, "exp": int(time.time()) + 7200}},
        lambda patch: patch(id_tokens, "LEEWAY", 10**6),
    ),
    "access token": (
        lambda client_id: {"claims": {"at_hash": "b2YgYW5vdGhlciB0b2tlbg"}},
        lambda patch: patch(CodeIDToken, "validate_at_hash", lambda self: None),
    ),
    "signature": (
        lambda client_id: {"signed": "another key"},
        lambda patch: patch(jwt, "decode", unverified),
    ),
    "no signature": (
        lambda client_id: {
            "signed": "none",
            "claims": {"at_hash": None},
            "metadata": {"id_token_signing_alg_values_supported": NONE},
        },
        lambda patch: patch(id_tokens, "ALGORITHMS", frozenset(NONE)),
    ),
    "person at the other endpoint": (
        lambda client_id: {
            "claims": {"email": None, "email_verified": None},
            "userinfo": {"sub": "s-other"},
        },
        lambda patch: patch(openid, "is_same_person", lambda about, claims: True),
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_answer_that_is_wrong_is_one_sentence_and_changes_nothing(attack, provider, settings):
    lies, _ = ATTACKS[attack]
    provider.lie(**lies(settings.OIDC_CLIENT_ID))
    before, client = tables(), Client()
    answer = client.get("/login/company/")
    if answer.status_code == 302:  # what is wrong in the metadata is seen before
        answer = client.get(answer_of(answer["Location"], "s-ann"))
    assert answer.status_code == 403
    assert NOT_VALID in said(answer)
    assert not is_in(client)
    assert tables() == before


@pytest.mark.filterwarnings("ignore:JWS algorithm .none.")
@pytest.mark.parametrize("attack", ATTACKS)
def test_without_its_check_the_wrong_answer_would_let_somebody_in(attack, provider, settings, monkeypatch):
    """The positive control of each attack."""
    lies, take_out = ATTACKS[attack]
    take_out(monkeypatch.setattr)
    provider.lie(**lies(settings.OIDC_CLIENT_ID))
    client = Client()
    assert log_in(client, "s-ann").status_code == 302
    assert is_in(client)
    assert User.objects.get().role == "manager"


def test_the_true_answer_lets_the_invited_in(provider):
    client = Client()
    answer = log_in(client, "s-ann")
    assert (answer.status_code, answer["Location"]) == (302, "/")
    ann = User.objects.get()
    assert (ann.role, ann.email, ann.first_name, ann.username) == (
        "manager",
        "ann@example.org",
        "Ann Example",
        "ann",
    )
    assert (ann.is_staff, ann.is_superuser, ann.has_usable_password()) == (False, False, False)
    assert Identity.objects.values_list("user", "issuer", "subject", "label").get() == (
        ann.pk,
        provider.issuer,
        "s-ann",
        "ann@example.org",
    )
    assert AccountLink.objects.get().user == ann


def test_no_token_of_the_provider_is_kept_or_given_to_the_browser(provider, monkeypatch):
    tokens = []
    exchange = openid._token
    monkeypatch.setattr(openid, "_token", lambda *given: tokens.append(exchange(*given)) or tokens[-1])
    client = Client()
    answer = log_in(client, "s-ann")
    secrets_of = [tokens[0]["access_token"], tokens[0]["id_token"], tokens[0]["refresh_token"]]
    kept = str(tables()) + str([session.get_decoded() for session in Session.objects.all()])
    shown = str(answer.headers) + answer.content.decode() + client.cookies.output()
    assert all(secret and secret not in kept + shown for secret in secrets_of)


# -- the state: a log-in goes on in the browser where it began ------------------------------------------------


def with_state(path, state):
    head, _, _ = path.partition("&state=")
    assert head != path
    return f"{head}&state={state}"


def test_an_answer_to_another_state_is_refused(monkeypatch):
    before, client = tables(), Client()
    forged = with_state(answer_of(begin(client), "s-ann"), "x" * 43)
    answer = client.get(forged)
    assert answer.status_code == 403
    assert "This log-in was begun in another browser or more than ten minutes ago." in said(answer)
    assert not is_in(client)
    assert tables() == before

    monkeypatch.setattr(sign_on_pages, "is_answer", lambda flow, state: True)  # the control
    client = Client()
    assert client.get(with_state(answer_of(begin(client), "s-ann"), "x" * 43)).status_code == 302
    assert is_in(client)


def test_an_answer_in_a_browser_that_began_nothing_or_long_ago_is_refused(monkeypatch):
    before = tables()
    back = answer_of(begin(Client()), "s-ann")
    assert "begun in another browser" in said(Client().get(back))
    client = Client()
    back = answer_of(begin(client), "s-ann")
    with monkeypatch.context() as patch:
        patch.setattr(sign_on_pages, "SECONDS", -1)
        assert client.get(back).status_code == 403
    assert tables() == before


def test_the_cookie_of_a_log_in_cannot_be_written_by_hand():
    client = Client()
    back = answer_of(begin(client), "s-ann")
    fields = signing.loads(client.cookies["company"].value, salt=sign_on_pages.SALT)
    client.cookies["company"] = signing.dumps(fields, key="of another installation", salt=sign_on_pages.SALT)
    assert client.get(back).status_code == 403
    client = Client()
    begin(client)
    cookie = client.cookies["company"]
    assert (cookie["httponly"], cookie["samesite"], cookie["max-age"]) == (True, "Lax", 600)


# -- PKCE: a code is of use only to who began -----------------------------------------------------------------


def test_a_code_is_exchanged_with_the_verifier_of_its_challenge_alone(provider):
    client = Client()
    asked = begin(client)
    assert "code_challenge_method=S256" in asked
    back = answer_of(asked, "s-ann")
    state, nonce, verifier, *purpose = signing.loads(client.cookies["company"].value, salt=sign_on_pages.SALT)
    assert 43 <= len(verifier) <= 128
    assert verifier not in asked
    before = tables()
    client.cookies["company"] = signing.dumps([state, nonce, "v" * 64, *purpose], salt=sign_on_pages.SALT)
    answer = client.get(back)
    assert answer.status_code == 403
    assert "This log-in was used before or took too long." in said(answer)
    assert tables() == before
    # The control: the same code with its own verifier.
    client.cookies["company"] = signing.dumps([state, nonce, verifier, *purpose], salt=sign_on_pages.SALT)
    assert client.get(back).status_code == 302


def test_a_code_is_of_use_once():
    client = Client()
    back = answer_of(begin(client), "s-ann")
    cookie = client.cookies["company"].value
    assert client.get(back).status_code == 302
    client.post("/logout/")
    assert "begun in another browser" in said(client.get(back))
    client.cookies["company"] = cookie
    assert "This log-in was used before or took too long." in said(client.get(back))
    assert not is_in(client)


# -- what else the provider may do ----------------------------------------------------------------------------


def test_a_new_key_of_the_provider_is_read_when_it_comes_and_not_before(provider):
    assert is_in_after("s-ann")
    provider.lie()
    assert is_in_after("s-ann")
    assert "/jwks" not in provider.asked()
    assert "/.well-known/openid-configuration" not in provider.asked()
    provider.lie(signed="new key")
    openid._known.keys_at -= openid.RELOAD_SECONDS
    assert is_in_after("s-ann")
    assert provider.asked().count("/jwks") == 1


def is_in_after(sub):
    client = Client()
    log_in(client, sub)
    return is_in(client)


def test_an_address_is_asked_for_where_the_token_has_none(provider):
    provider.lie(claims={"email": None, "email_verified": None})
    assert is_in_after("s-ann")
    assert "/userinfo" in provider.asked()


def test_who_says_no_at_the_provider_gets_a_sentence():
    client, before = Client(), tables()
    begin(client)
    state = signing.loads(client.cookies["company"].value, salt=sign_on_pages.SALT)[0]
    answer = client.get(f"{BACK}?error=access_denied&error_description=<b>no</b>&state={state}")
    assert answer.status_code == 403
    assert "Your company’s log-in did not let you in." in said(answer)
    assert "<b>no</b>" not in answer.content.decode()
    assert tables() == before


def test_an_answer_in_the_name_of_another_provider_is_refused(monkeypatch):
    client = Client()
    back = answer_of(begin(client), "s-ann")
    answer = client.get(f"{back}&iss=https://other.example")
    assert (answer.status_code, NOT_VALID in said(answer)) == (403, True)
    client = Client()
    back = answer_of(begin(client), "s-ann")
    monkeypatch.setattr(openid, "is_issuer", lambda name: True)  # the control
    assert client.get(f"{back}&iss=https://other.example").status_code == 302


@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "jwks_uri"])
@pytest.mark.parametrize(
    "value", ["http://10.0.0.1/", "ftp://x.example/", "https://a@b.example/", "/token", None, 7]
)
def test_addresses_of_the_provider_are_over_tls_or_on_this_machine(name, value, provider):
    provider.lie(metadata={name: value})
    answer = Client().get("/login/company/")
    assert (answer.status_code, NOT_VALID in said(answer)) == (403, True)
