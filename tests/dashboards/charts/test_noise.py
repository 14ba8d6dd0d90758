from pullback_dashboards.charts.noise import HEIGHT, MOST_DAYS, Floor, noise


def bars(svg):
    return svg.count('class="noise-day')


def test_a_day_is_a_bar_and_one_with_few_groups_is_hollow():
    svg = noise([Floor("2026-03-01", 0.004), Floor("2026-03-02", 0.02, provisional=True)])
    assert (bars(svg), svg.count("noise-few")) == (2, 1)
    assert noise([]) == ""


def test_only_the_newest_days_are_drawn():
    assert bars(noise([Floor(str(n), 0.01) for n in range(90)])) == MOST_DAYS


def test_a_quiet_machine_looks_quiet_and_a_loud_one_fills_the_height():
    def tallest(floor):
        return max(float(part.split('"')[0]) for part in noise([Floor("d", floor)]).split('height="')[2:])

    assert tallest(0.002) < HEIGHT / 5
    assert tallest(0.2) > HEIGHT * 0.8
