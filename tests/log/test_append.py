"""The thread that takes a producer's reports, without a broker."""

from __future__ import annotations

from headrace.log.kafka.append import Appender


class Producer:
    """A producer with some reports on their way, which come one by one."""

    def __init__(self, waiting):
        self.waiting = waiting

    def __len__(self):
        return self.waiting

    def poll(self, timeout):
        assert self.waiting, "nobody waits for this producer any more"
        self.waiting -= 1


def test_the_reports_of_a_producer_that_was_replaced_are_taken_to_the_last_and_no_longer():
    appender, replaced = Appender(None), Producer(3)
    appender._take_reports(replaced)
    assert replaced.waiting == 0


def test_no_report_is_taken_once_the_appender_is_closed():
    appender, waiting = Appender(None), Producer(3)
    appender._closed.set()
    appender._take_reports(waiting)
    assert waiting.waiting == 3
