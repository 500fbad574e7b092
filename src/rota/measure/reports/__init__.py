"""The form of a measurement's answer, and how it is shown; for `rota bench` and `rota lab`.

report        what was measured, where, when and with which settings
surroundings  the machine, the versions and the settings of the database
grids         figures as tables
charts        series and comparisons as pictures
html          all of it on one page
"""
