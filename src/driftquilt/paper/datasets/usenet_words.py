"""The words whose presence the features of Usenet1 and Usenet2 tell, in column order."""

from __future__ import annotations

__all__ = ["USENET1", "USENET2"]

_USENET1 = """
intellect surrender skepticism shameful n3jxp dsl chastity cadre pitt geb treatment ames gordon
modified area disease patient math missions patients banks physicians brain arc others archive
drugs related she sorry faq cancer her yankee galileo coverage astronomical perfect planetary
astronomy hospital astro va pc mathematics spdcc occurred proposed fly exploration treat box
shafer dyer langley digital rec co space princeton therapies hiv including satellite ice horse 04
virginia risk experts purely gps going richard station any degrees add scale francisco dan steroid
infected date baseball replace espn martian falls bnr atlantic gets uclink saved alcohol aids
length ground s
"""

_USENET2 = """
intellect surrender skepticism shameful n3jxp dsl chastity cadre patient geb gordon banks players
experts league his hiv pitt cancer game aids declined camelot wish ago nl last spot oral 1993apr20
22 young physicians bob teams certainly played ames rockets orin kingoz year 39 bradley come
various position point patients player noring better 2 complex beginning virtually therapies
steinn steinly sigurdsson ross symptoms braves normal taken eng wrench thiokol sex rborden
outbreaks mda girlfriend broke adelaide friend dying msg risk daily hit modified aaa baseball cuts
season 1993apr19 scott houston roth concept spencer fiction davis cleveland wesleyan steroid
startled spinoffs
"""

USENET1 = tuple(_USENET1.split())
USENET2 = tuple(_USENET2.split())
