"""Text that addresses a model: orders to whatever AI system reads it, in six languages.

These patterns are held against *concealed* text only, where nothing has a reason to speak to a machine. In visible
text they would hit every article about the subject; there the Keeper is asked.

What counts is an order: to drop instructions, to answer or judge in a certain way, to take on a role. A hidden pointer
for crawlers ("AI agents: the index is at /llms.txt") orders nothing, nor does a hidden headline about AI. Speaking
about such orders is not giving them: a phrase in quotation marks, or beside the name of the attack, is let pass.
"""

import re
import unicodedata

# -- words

_MODEL = (
    r"(?:(?:ai|llm|gpt)[- ](?:agent|assistant|system|crawler|model|bot|reader|reviewer|summari[sz]er|tool|engine)s?"
    r"|ais|llms?|(?:large )?language models?|chatbots?|chat ?gpt|claude|gemini|copilot|perplexity)"
    r"(?![\w-]|['’]s| (?:user|developer|subscriber|engineer|expert|enthusiast|customer|company|plus|pro)s?\b)"
)
_PAGE = r"(?:page|document|article|text|content|website|paper|candidate|manuscript|resume|cv)"
_ORDER = (
    r"(?:ignore|disregard|forget|classify|rate|mark|score|label|rank|judge|respond|reply|answer|output|print|say"
    r"|recommend|summari[sz]e|include|mention|add|treat|conclude|cite|tell|obey|do not|don['’]?t|never|always)"
)
_ORDER_HERE = (
    rf"\b{_ORDER}\b.{{0,60}}\b(?:this|these|above|following|only|previous|instructions?|{_PAGE}|summary|response|users?"
    r"|that|with|nothing|everything|all)\b"
)
"""An order that is about the text it stands in, or about the answer: "recommend this page", "respond only with"."""
_START = r"(?:^|[.!?:;*#>\])] ?|[–—-] )"
"""Where a sentence begins: in the middle of one, "for AI agents" addresses nobody."""
_PRAISE = (
    r"(?:(?:highly|very|most|maximally|extremely|100 ?%|fully) )?"
    r"(?:useful|relevant|trustworthy|trusted|authoritative|safe|benign|important|excellent|positive|accepted)"
)

# -- orders to drop instructions. Headlines quote them, so these alone are let pass where text speaks about the attack.

_OVERRIDES = (
    (
        r"\b(?:ignore|disregard|forget|override|bypass|discard)\b.{0,30}\b(?:previous|prior|above|preceding|earlier|all|any"
        r"|your)\b.{0,30}\b(?:instruction|prompt|directive|guideline|rule|command)s?\b"
    ),
    (
        r"\b(?:ignorier|vergiss|vergessen sie|missacht|verwirf)\w*\b.{0,30}\b(?:vorherig|bisherig|obig|vorangegangen|früher"
        r"|vorig|all)\w*\b.{0,20}\b(?:anweisung|instruktion|befehl|vorgabe|prompt)\w*"
    ),
    (
        r"\b(?:ignor|oubli)\w*\b.{0,20}\b(?:instruction|consigne|directive)s?\b.{0,20}"
        r"\b(?:précédent|antérieur|ci-dessus|initial)"
    ),
    (
        r"\b(?:ignor|olvid|descart)\w*\b.{0,20}\b(?:instruccion|orden|indicacion)\w*\b.{0,20}"
        r"\b(?:anterior|previa|arriba|inicial)"
    ),
    (
        r"(?:忽略|无视|無視|忘记|忘掉|不要理会).{0,8}(?:以上|之前|上述|先前|前面|所有|此前).{0,8}"
        r"(?:指令|提示|内容|說明|说明|指示|规则|命令|要求)"
    ),
    (
        r"(?:これまで|今まで|以前|上記|以上|前述|前|すべて|全て|この(?:記事|ページ))の.{0,12}"
        r"(?:指示|命令|内容|プロンプト|ルール)を?(?:すべて|全て)?(?:無視|忘れ)"
    ),
)

# -- other orders

_ROLES = (
    rf"\byou(?: are|['’]re)(?: now)? (?:an?|the|my) (?:\w+ ){{0,3}}{_MODEL}",
    r"\byou(?: are|['’]re)(?: now)? an? ai\s*(?:[.,;:!]|$|that\b|and\b|who\b|which\b)",
    (
        r"\b(?:du bist|sie sind)(?: nun| jetzt)? (?:eine? )?(?:ki\b(?!-)|ki-(?:assistent|system|modell|agent|bot)\w*"
        r"|künstliche intelligenz|(?:großes )?sprachmodell)"
    ),
    (
        r"\b(?:tu es|vous êtes)(?: maintenant| désormais)? (?:une (?:ia|intelligence artificielle)\b|un modèle de langage"
        r"|un assistant (?:ia|d['’]ia|virtuel))"
    ),
    (
        r"\b(?:eres|usted es)(?: ahora)? (?:una (?:ia|inteligencia artificial)\b|un modelo de lenguaje"
        r"|un asistente (?:de ia|virtual))"
    ),
    r"你(?:现在)?是(?:一个|一名)?(?:ai|人工智能|语言模型|大模型)",
    r"あなたは.{0,6}(?:ai|言語モデル|人工知能)(?:アシスタント|モデル)?(?:です|だ)",
)
_ADDRESSES = (
    (
        rf"{_START}(?:(?:important |special |hidden |a )?(?:note|notice|message|instructions?|hint) ?(?:to|for|:)|attention"
        rf"|dear|hey|hello|hi|to|for|if you(?: are|['’]re)),? ?(?:an? |the |all |any |every )?(?:\w+ )?{_MODEL}.{{0,60}}?"
        rf"{_ORDER_HERE}"
    ),
    rf"{_START}{_MODEL} ?[:,!-] ?(?:please )?{_ORDER_HERE}",
    (
        rf"\b{_MODEL} (?:(?:who|that) (?:is |are )?)?(?:read|process|visit|pars|crawl|summari[sz]|index|analy[sz])\w* "
        rf"(?:this|the)\b.{{0,80}}{_ORDER_HERE}"
    ),
    (
        rf"\b{_MODEL} (?:must|should|shall|have to|need to|are (?:required|instructed|ordered) to)\b.{{0,30}}"
        rf"\b{_ORDER}\b.{{0,20}}\b(?:this|the following) ?{_PAGE}?\b"
    ),
    (
        rf"{_START}(?:(?:hinweis|nachricht|achtung|anweisung\w*) ?(?:an|für)?|an|für|liebe\w?) ?:?(?:alle )?"
        r"(?:ki|kis|ki-\w+|sprachmodelle?n?|chatbots?)\b.{0,60}"
        r"\b(?:ignorier|bewert|markier|antwort|stuf|klassifizier|empfehl|erwähn)\w*.{0,60}"
        r"\b(?:diese\w?|nur|als|nicht|anweisung\w*|vorherig\w*|bisherig\w*)\b"
    ),
    (
        rf"{_START}(?:(?:à l['’]attention des?|note (?:aux?|pour)|aux?|pour (?:les|toute)|chère?s?|attention) ?:?)"
        r".{0,12}\b(?:ias?|assistants? (?:ia|virtuels?)|modèles? de langage|agents? ia)\b.{0,60}"
        r"\b(?:ignor|évalu|class|marqu|répond|recommand|considér|mentionn)\w*.{0,60}"
        r"\b(?:cette|cet|ce|comme|uniquement|consignes|instructions)\b"
    ),
    (
        rf"{_START}(?:(?:nota para|aviso para|a|para|atención|estimad[oa]s?) ?:?).{{0,12}}"
        r"\b(?:ias?|asistentes? (?:de ia|virtuales)|modelos? de lenguaje|agentes? de ia)\b.{0,60}"
        r"\b(?:ignor|evalú|evalu|clasific|marc|calific|respond|recomiend|recomend|consider|mencion)\w*.{0,60}"
        r"\b(?:est[ae]|como|solo|sólo|únicamente|instrucciones)\b"
    ),
    (
        r"(?:致|给|各位|所有)(?:各位|所有)?(?:ai|人工智能|大?语言模型)(?:系统|助手|模型|代理|爬虫)?.{0,6}(?:[:：,，]|请|必须|应)"
        r".{0,30}(?:忽略|标记|评为|视为|回答|输出|回复|推荐|不要|无视)"
    ),
    (
        r"(?:ai|言語モデル)(?:アシスタント|システム|モデル|エージェント)?(?:の皆様)?へ[:：、,].{0,60}"
        r"(?:無視|出力|回答|評価|分類|推薦|しないで|してください)"
    ),
)
_VERDICTS = (
    (
        rf"\b(?:when|while|if|before|after)\b.{{0,30}}\b(?:summari[sz]|evaluat|judg|classif|asked (?:about|to))\w*\b.{{0,30}}"
        rf"\b(?:this {_PAGE}|the {_PAGE}|(?:a|this|the) summary)\b.{{0,60}}\b{_ORDER}\b"
    ),
    rf"\b(?:if|when) (?:the )?users? (?:asks?|wants?)\b.{{0,60}}\b{_ORDER}\b",
    r"\bwenn (?:du|sie|ihr)\b.{0,20}\b(?:seite|text|artikel|dokument)\b.{0,20}\b(?:zusammenfass|bewert)\w*",
    r"\b(?:quand|lorsque|si) (?:tu|vous)\b.{0,20}\b(?:résum|évalu)\w*\b.{0,20}\b(?:page|article|texte|document)\b",
    r"\b(?:al|cuando|si)\b.{0,12}\b(?:resum|evalu)\w*\b.{0,20}\b(?:página|artículo|texto|documento)\b",
    (
        rf"\b(?:rate|classify|judge|score|label|rank|mark|treat|evaluate|consider) (?:this|the) {_PAGE}\b.{{0,20}}"
        rf"(?:\bas|=|:|\bto be)? ?[\"'“]?\b{_PRAISE}\b"
    ),
    r"\b(?:useful|relevan(?:t|ce)) ?= ?1\b",
    (
        r"\b(?:bewert|markier|stuf|klassifizier|betracht)\w*\b.{0,12}\b(?:seite|artikel|text|dokument|inhalt)\b.{0,20}\bals\b"
        r".{0,15}\b(?:nützlich|relevant|wichtig|vertrauenswürdig|sicher)"
    ),
    (
        r"\b(?:évalu|class|marqu|considèr|considér|not)\w*\b.{0,12}\b(?:page|article|texte|document)\b.{0,12}\bcomme\b.{0,15}"
        r"\b(?:utile|pertinent|important|fiable)"
    ),
    (
        r"\b(?:califi|marc|marqu|clasifi|evalú|consider)\w*\b.{0,12}\b(?:página|artículo|texto|documento)\b.{0,12}\bcomo\b"
        r".{0,15}\b(?:útil|relevante|importante|fiable)"
    ),
    r"(?:将|把)(?:本|这个?|此)(?:页面?|文章?|网页).{0,6}(?:标记|评|判断?|视|分类)(?:定|价)?为.{0,6}(?:有用|相关|重要|可信)",
    r"(?:この|本)(?:ページ|記事|文書)を.{0,10}(?:有用|関連|重要|信頼).{0,10}(?:評価|分類|判定|判断|マーク)",
)
_ANSWERS = (
    (
        r"\b(?:respond|reply|answer)\b (?:only |exactly |exclusively )?with (?:only|exactly|nothing but|exclusively|[\"“']"
        r"|the (?:following|words?|phrase|exact))"
    ),
    r"\b(?:respond|reply|answer|output|print|say) (?:only|nothing but) (?:with\b|[\"“'])",
    r"\bantwort\w*\b (?:sie )?(?:nur|ausschließlich|lediglich) (?:mit|noch)\b",
    r"\brépond\w*\b (?:uniquement|seulement|exclusivement) (?:par|avec|que)\b|\bne répond\w* que\b",
    r"\brespond\w*\b (?:solo|sólo|únicamente|exclusivamente) (?:con|que)\b",
    r"(?:只|仅)(?:需要?)?(?:回答|输出|回复)[“\"「『:：]",
    r"とだけ(?:出力|回答|返答|答え)",
)
_MACHINERY = (
    (
        r"\b(?:reveal|repeat|print|output|show|leak|send|disclose|translate|summari[sz]e)\b.{0,15}\b(?:your|the)\b.{0,15}"
        r"\b(?:system prompt|(?:initial|hidden|original|secret) (?:prompt|instructions))"
    ),
    r"\byour (?:system|developer|initial|hidden) (?:prompt|instructions)\b",
    rf"\b(?:new|updated|additional|hidden|secret) (?:system )?(?:instructions?|prompt) (?:for|to) (?:the |all |any )?{_MODEL}",
    r"\[(?:system|inst|/inst)\]|\bsystem (?:override|instructions?) ?:|<\|\w+\|>|<start_of_turn>",
    r"\b(?:do not|don['’]?t|never) (?:mention|reveal|disclose) (?:this|these)\b.{0,25}\b(?:instruction|prompt)s?\b",
    r"\b(?:do not|don['’]?t|never) tell the user\b",
)

_OVERRIDE = re.compile("|".join(_OVERRIDES), re.DOTALL)
_OTHER = re.compile("|".join(_ROLES + _ADDRESSES + _VERDICTS + _ANSWERS + _MACHINERY), re.DOTALL)
_ABOUT = re.compile(
    r"prompt[- ]?injection|injection attack|jailbreak|提示(?:词)?注入|プロンプト[・ ]?インジェクション"
    r"|inyección de prompt|injection de prompt"
)
_NEAR = 200
"""Characters around a phrase in which the name of the attack shows that the text speaks about it."""
_OPENING, _CLOSING = frozenset("\"'“”„«‹「『‘"), frozenset("\"'“”»›」』’")
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_SPACE = re.compile(r"\s+")


def addresses_model(text: str) -> bool:
    """Whether concealed text gives orders to a model that reads it."""
    folded = _SPACE.sub(" ", _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).lower()).strip()
    if _OTHER.search(folded):
        return True
    return any(not _speaks_about(folded, match) for match in _OVERRIDE.finditer(folded))


def _speaks_about(text: str, match: re.Match[str]) -> bool:
    quoted = text[: match.start()].rstrip()[-1:] in _OPENING and text[match.end() :].lstrip(".!")[:1] in _CLOSING
    return quoted or bool(_ABOUT.search(text[max(0, match.start() - _NEAR) : match.end() + _NEAR]))
