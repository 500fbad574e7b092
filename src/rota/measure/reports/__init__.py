"""The form of a measurement's answer, and how it is shown; for `rota bench` and `rota lab`.

report    what was found out, by whom, where and when
grids     figures as tables
charts    series and comparisons as pictures
html      the page that has it all
progress  how a measurement says how far it is
"""
