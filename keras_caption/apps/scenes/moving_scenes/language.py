"""The words of the captions of clips, for writing and for judging them."""

VERB_PHRASES = {
    "move": ("moves", "goes"),
    "turn": ("turns around", "turns upside down", "turns"),
    "grow": ("grows", "gets bigger"),
    "shrink": ("shrinks", "gets smaller"),
    "enter": ("enters", "comes in"),
    "leave": ("leaves", "goes out"),
    "touch": ("touches", "bumps into"),
    "move away": ("moves away from", "goes away from"),
    "pass behind": ("passes behind", "goes behind"),
}
DIRECTION_PHRASES = {
    "left": ("left", "to the left"),
    "right": ("right", "to the right"),
    "up": ("up", "upwards"),
    "down": ("down", "downwards"),
}
# Where an object comes from that moves in a direction, and where it leaves.
ENTRANCES = {
    "left": ("from the right",),
    "right": ("from the left",),
    "up": ("from below", "from the bottom"),
    "down": ("from above", "from the top"),
}
EXITS = {
    "left": ("to the left", "on the left"),
    "right": ("to the right", "on the right"),
    "up": ("upwards", "at the top"),
    "down": ("downwards", "at the bottom"),
}
