"""Small JSON made smaller, since DynamoDB counts each write by the started kilobyte.

A verdict has the same names in it each time; deflate that knows them beforehand halves it. The dictionary is part of the
stored form: one that was released is never changed, a better one gets the next number.
"""

import zlib

_RAW = -15
"""Deflate without the header and checksum that take 6 bytes: DynamoDB checks its own."""

# What comes most often stands last, where it is cheapest to refer to.
_DICTIONARY_1 = (
    b'{"at":"2026-01-01T00:00:00Z","cycle":"#2026-01-01T00:00","kind":"fetch","cause":"deadline","detail":""}'
    b'"origin":"feed","origin":"link","origin":"search","published":null,"url":"https://www.",'
    b'"canonical":"https://","title":"","revision":1,"etag":"W/\\"","last_modified":"Mon, 01 Jan 2026 00:00:00 GMT",'
    b'"id":"","trigger":"Triage","topic":"","subject":"","title":"","url":"https://","cycle":"","started":"2026-01-01T'
    b'00:00:00.000000Z","seconds":0.,"gate_wait":0.0,"outcome":"answered","error":null,"model_asked":"decider",'
    b'"model":"decider","question_version":"triage-1","judgement":{"useful":0.,"injection":0.0,"kinds":{"release":0.0,'
    b'"announcement":0.0,"discussion":0.0,"tutorial":0.0,"opinion":0.0,"beginner_question":0.0,"spam":0.0,'
    b'"unrelated":0.0},"quotes":{"0":0.0,"1":0.0,"2":0.0,"3":0.0,"4":0.0,"5":0.0,"6":0.0,"7":0.0,"8":0.0,"9":0.0,'
    b'"10":0.0,"11":0.0,"12":0.0,"13":0.0,"14":0.0,"15":0.0,"16":0.0,"17":0.0,"18":0.0,"19":0.0}},'
    b'"verdict":{"kept":false,"reason":"not_useful","kept":true,"reason":null,"judgement":{"useful":0.9'
    b'"injection":0.0,"kind":"release","quotes":[{"text":"","paragraph":0,"start":0,"end":,"text_hash":""}],'
    b'"findings":{"truncated":false,"zero_width":0,"tag_characters":0,"concealed":0,"role_markers":[],'
    b'"concealed_address":null},"text_hash":"","model_asked":"decider","model":"decider","question_version":"triage-1",'
    b'"brief_hash":"","option_order":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19],'
    b'"thresholds":{"keep":0.6,"injection":0.5}},"kept":true,"kind":"release","tool_calls":[],"input_tokens":null,'
    b'"attempts":1}'
)
_DICTIONARIES = {1: _DICTIONARY_1}
_NEWEST = max(_DICTIONARIES)


def pack(text: str) -> bytes:
    """JSON as bytes, the first of which names the dictionary."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, _RAW, zdict=_DICTIONARIES[_NEWEST])
    return bytes([_NEWEST]) + deflate.compress(text.encode()) + deflate.flush()


def unpack(data: bytes) -> str:
    """The JSON again. Raises ValueError for what a newer wikikeeper packed."""
    dictionary = _DICTIONARIES.get(data[0])
    if dictionary is None:
        raise ValueError(f"packed with dictionary {data[0]}, which this version does not have")
    inflate = zlib.decompressobj(_RAW, zdict=dictionary)
    return (inflate.decompress(data[1:]) + inflate.flush()).decode()
