"""Walls: pages that stand in front of the page that was asked for, with status 200.

A wall has little text, and some of it says what it is. An article about bot protection has much text; so where there
is more than a wall ever says, it is none.
"""

import re

_MOST_TEXT = 1500
"""Characters of visible text on the wordiest login or consent wall; articles have more."""
_MOST_CHALLENGE = 2500
"""The same for a challenge that also shows itself by its title: some explain at length why they are there."""
_SHORT_CHALLENGE = 800
"""The same for one that shows itself by one sign only."""
_MOST_REST = 300
"""Characters of a login or consent wall that are about neither: a name, a menu, a slogan."""
_PROSE = 40
"""Characters from which a line is text and not a button or a menu entry."""

_CHALLENGE_TITLE = re.compile(
    r"^\s*(?:just a moment(?:\.|…|\s*$)|attention required! \| cloudflare|one moment, please|making sure you(?:['’]|&#39;)re not a bot"
    r"|ddos-guard|access denied|access to this page has been denied|are you a robot|robot check|pardon our interruption"
    r"|please wait\b.*cloudflare|security check|nur einen moment|un instant|un momento|vercel security checkpoint"
    r"|bot verification|human verification|client challenge)",
    re.I,
)
_CHALLENGE_TEXT = re.compile(
    r"checking (?:your browser|if the site connection is secure)|enable javascript and cookies to continue"
    r"|verif(?:y|ying) (?:that )?you are (?:a )?human|needs to review the security of your connection"
    r"|making sure you['’]re not a bot|protected by anubis|press (?:&|and) hold to confirm|complete the security check"
    r"|please (?:complete|solve) the (?:captcha|challenge)|unusual (?:traffic|activity) from your"
    r"|confirm (?:that )?you(?:['’]re| are) (?:not a robot|human)|i['’]?m not a robot|you have been blocked"
    r"|überprüf\w+,? (?:dass|ob) sie ein mensch|vérifi\w+ que vous êtes (?:un )?humain|verifica\w* que (?:usted )?(?:es|eres) humano",
    re.I,
)
_CHALLENGE_HTML = re.compile(
    r"/cdn-cgi/challenge-platform/|_cf_chl_opt|cf-browser-verification|captcha-delivery\.com|px-captcha|_pxappid"
    r"|anubis_challenge|/\.within\.website/|_incapsula_resource|ddos-guard/js-challenge|awswafintegration|aws-waf-token"
    r"|__ddg[0-9]+|distil_r_captcha|geo\.captcha-delivery",
    re.I,
)
_LOGIN = re.compile(
    r"(?:sign|log) ?in (?:to (?:continue|view|see|read|access|proceed)|required)"
    r"|(?:please|you (?:must|need to)|you have to) (?:sign|log) ?in(?! to (?:reply|comment|post|vote|answer|edit|follow))"
    r"|(?:subscribe|register|sign up) to (?:continue|keep) reading|members[- ]only content"
    r"|this (?:content|page|article) is (?:only )?(?:for|available to) (?:members|subscribers)"
    r"|(?:melden sie sich|melde dich|loggen sie sich) (?:bitte )?(?:an|ein)[, ]+um|anmelden, um|nur für abonnenten"
    r"|connectez-vous (?:pour|afin)|(?:inicia|inicie) sesión para|ログインして(?!コメント)|请(?:先)?登录|登录后(?:查看|阅读)",
    re.I,
)
_LOGIN_TITLE = re.compile(
    r"^\s*(?:sign ?in|log ?in|login|anmelden|anmeldung|einloggen|connexion|se connecter|iniciar sesión|登录|ログイン)"
    r"\s*(?:$|[|·•–—-]|to\b|zu\b|bei\b)",
    re.I,
)
_CONSENT_TITLE = re.compile(
    r"^\s*(?:before you continue|bevor sie (?:zu|fortfahren)|avant d['’]accéder|antes de (?:ir|continuar))", re.I
)
_CONSENT = re.compile(
    r"(?:accept|agree|consent|zustimm\w*|akzeptier\w*|accepter|aceptar)\b.{0,200}\bcookies?\b"
    r"|\bcookies?\b.{0,200}\b(?:accept|agree|consent|zustimm\w*|akzeptier\w*|accepter|aceptar)\b",
    re.I | re.S,
)
_OF_CONSENT = re.compile(
    r"cookie|consent|privacy|partner|personali[sz]|advert|datenschutz|einwillig|zustimm|werbung|tracking|données|publicité"
    r"|datos|publicidad|accept|reject|agree|settings|akzeptier|ablehn|einstellung",
    re.I,
)


def wall(title: str, visible: str, html_start: str) -> str | None:
    """Which wall a page is: "bot_challenge", "login_wall", "consent_wall", or None.

    `visible` is all text that a reader sees, no line with text of two blocks; `html_start` the first part of the source, where
    challenges load their scripts.
    """
    if len(visible) <= _MOST_CHALLENGE and _is_challenge(title, visible, html_start):
        return "bot_challenge"
    if len(visible) > _MOST_TEXT:
        return None
    if (_LOGIN.search(visible) or _LOGIN_TITLE.search(title)) and _rest(visible, _LOGIN) <= _MOST_REST:
        return "login_wall"
    if (_CONSENT.search(visible) or _CONSENT_TITLE.search(title)) and _rest(visible, _OF_CONSENT) <= _MOST_REST:
        return "consent_wall"
    return None


def _is_challenge(title: str, visible: str, html_start: str) -> bool:
    titled = bool(_CHALLENGE_TITLE.search(title))
    says_so = bool(_CHALLENGE_TEXT.search(visible))
    # Scripts of bot protection are on ordinary pages too; alone they say nothing.
    scripted = bool(_CHALLENGE_HTML.search(html_start))
    if titled and (says_so or scripted):
        return True
    return (titled or says_so) and len(visible) <= _SHORT_CHALLENGE and _rest(visible, _CHALLENGE_TEXT) <= _MOST_REST


def _rest(visible: str, of_wall: re.Pattern[str]) -> int:
    """Characters of text that have nothing to do with the wall."""
    lines = (line for line in visible.split("\n") if len(line) >= _PROSE)
    return sum(len(line) for line in lines if not of_wall.search(line))
