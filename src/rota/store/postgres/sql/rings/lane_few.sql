-- Whether there are so few lanes that each of them is looked at.
SELECT few FROM rota.lane_few
