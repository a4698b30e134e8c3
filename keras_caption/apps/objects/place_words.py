"""Words for places, as people use them."""

# Each line is a place: its name, then other words that mention it.
PLACE_WORDS = [
    line.split()
    for line in """
grass grassy field fields pasture meadow lawn grazing
street streets road roads roadway highway intersection city town downtown traffic
water ocean wave sea river lake waves harbor pond shore beach surf
beach sand sandy shore ocean sea
snow snowy slope slopes hill mountain mountains ski
tree trees branch branches forest woods wooded limb
building buildings house tower church city
wall walls
counter counters countertop kitchen table
table tables desk desks counter
sky air
track tracks rail rails railroad station platform
station platform depot tracks terminal
court
bathroom restroom toilet bath shower
kitchen stove oven
living room
bedroom bed hotel room
runway tarmac airport
ramp skate park
park parking lot
window windows sill
mirror
fence fenced enclosure
sidewalk street road curb
ground dirt
floor
pole post
""".strip().splitlines()
]


def names_of(place: list[str]) -> set[str]:
    """The words that name a place: the first, and its plural if it is one of them."""
    return {place[0]} | ({f"{place[0]}s"} & {*place})
