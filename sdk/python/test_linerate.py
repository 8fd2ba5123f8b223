"""The tests of the library. `cargo test -p linerate --test sdk` runs them."""

import json
import time
import unittest
import unittest.mock

import linerate
from linerate import BAD_SPEC, PERIOD, Content, Refusal, address, check_names, loop_factory, page, parse, tls_context


def spec(**more):
    return json.dumps({"contract": 3, "role": "client", "layer": "tcp", "workload": "rr"} | more)


class TestContent(unittest.TestCase):
    def test_a_page_is_the_published_splitmix_sequence(self):
        # 0xe220a8397b1dcdaf is the first number of splitmix64 with seed 0: its bytes, lowest first, modulo 64.
        alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        self.assertEqual(page(8), bytes(alphabet[b & 63] for b in bytes.fromhex("e220a8397b1dcdaf")[::-1]))
        self.assertEqual(page(9)[:8], page(8))

    def test_content_repeats_after_a_period_and_a_wrong_byte_is_not_counted(self):
        content = Content(100)
        self.assertEqual(bytes(content.piece(3 * PERIOD - 1, 2)), page(PERIOD)[-1:] + page(1))
        good = bytes(content.piece(5, 10))
        self.assertEqual(content.good(5, good), 10)
        self.assertEqual(content.good(5, b"!" + good[1:]), 9)


class TestSpec(unittest.TestCase):
    def refused(self, *arguments):
        with self.assertRaises(Refusal) as caught:
            parse(list(arguments))
        self.assertEqual(caught.exception.status, BAD_SPEC)
        return str(caught.exception)

    def test_defaults_are_those_of_the_contract(self):
        parsed = parse([spec()])
        self.assertEqual((parsed["connections"], parsed["threads"], parsed["timeout_ns"]), (1, 1, 10**10))

    def test_other_contracts_and_texts_are_refused(self):
        self.assertIn("contract 1", self.refused(spec(contract=1)))
        for arguments in ([], ["no"], ["[]"], ["{}"], [spec(), spec()]):
            self.assertIn("sdk/CONTRACT.md", self.refused(*arguments))

    def test_unknown_names_are_refused_with_the_nearest_one(self):
        self.assertIn('"conections" is not known; nearest: "connections"', self.refused(spec(conections=2)))
        self.assertIn('"options.bufer" is not known; nearest: "buffer"', self.refused(spec(options={"bufer": 1})))
        with self.assertRaisesRegex(Refusal, "known: a, b"):
            check_names("", {"xyz": 1}, {"a", "b"})

    def test_the_event_loop_is_one_of_two(self):
        self.assertIsNone(loop_factory(parse([spec()])))
        with self.assertRaisesRegex(Refusal, "known: asyncio, uvloop"):
            loop_factory(parse([spec(options={"loop": "trio"})]))


class TestNetwork(unittest.TestCase):
    def test_addresses_of_both_families_are_read(self):
        self.assertEqual(address("127.0.0.1:80"), ("127.0.0.1", 80))
        self.assertEqual(address("[::1]:8080"), ("::1", 8080))

    def test_a_layer_without_tls_has_no_context_and_tls_without_texts_is_refused(self):
        self.assertIsNone(tls_context(parse([spec()])))
        for role in ("client", "server"):
            with self.assertRaisesRegex(Refusal, '"tls"'):
                tls_context(parse([spec(layer="tls", role=role)]))

    def test_ready_has_the_address_in_brackets_for_ipv6(self):
        events = []
        self.enterContext(unittest.mock.patch.object(linerate, "emit", lambda **event: events.append(event)))
        for name in (("127.0.0.1", 7), ("::1", 7, 0, 0)):
            linerate.emit_ready(unittest.mock.Mock(getsockname=lambda name=name: name))
        self.assertEqual([event["address"] for event in events], ["127.0.0.1:7", "[::1]:7"])


class TestTally(unittest.TestCase):
    def opened(self, **more):
        tally = linerate.Tally({"workload": "rr", **more})
        tally.open()
        return tally

    def test_a_timed_window_ends_at_its_end_and_leaves_out_what_was_in_flight(self):
        tally = self.opened(duration_ns=1_000, operations=9)
        tally.succeed(1, 5, tally.start, tally.start + 10)
        tally.succeed(1, 5, tally.start, tally.until + 1)
        time.sleep(0.000_1)
        tally.fail("reset")
        tally.fail("timeout")
        done = tally.done()
        self.assertEqual((done["operations"], done["bytes"], done["in_flight"]), (1, 5, 3))
        self.assertEqual((done["end_ns"] - done["start_ns"], dict(done["errors"])), (1_000, {"timeout": 1}))
        self.assertEqual(len(done["latency"]["pairs"]), 1)

    def test_a_window_whose_operations_are_used_up_ends_with_the_last_of_them(self):
        tally = self.opened(duration_ns=10**12, operations=2)
        tally.succeed(1, 1, tally.start, tally.start + 10)
        self.assertEqual(tally.window_end(), tally.start + 10**12)
        tally.succeed(1, 1, tally.start, tally.start + 20)
        self.assertEqual(tally.window_end(), tally.start + 20)

    def test_a_stream_ends_with_its_last_transfer_but_never_before_its_time(self):
        tally = self.opened(workload="stream", duration_ns=100, bytes=7)
        for after, end in ((20, 100), (120, 120)):
            tally.succeed(1, 7, tally.start, tally.start + after)
            self.assertEqual(tally.window_end(), tally.start + end)
        self.assertEqual((tally.operations, tally.in_flight), (2, 0))


class TestStart(unittest.TestCase):
    PROGRAM = {"name": "p", "version": "1", "roles": ["client"], "layers": ["tcp"], "workloads": ["rr"]}

    def status(self, text):
        """The exit status of a program of this spec, 0 if it ran."""
        ran = []

        async def run(spec):
            ran.append(spec)

        with unittest.mock.patch.object(linerate.sys, "argv", ["p", text]), \
                unittest.mock.patch.object(linerate.sys, "stderr"):
            try:
                linerate.start(self.PROGRAM, run)
            except SystemExit as end:
                return end.code
        return 0 if len(ran) == 1 else None

    def test_a_program_runs_what_it_implements_and_refuses_all_else(self):
        self.assertEqual(self.status(spec(connect="127.0.0.1:1")), 0)
        self.assertEqual(self.status(spec()), BAD_SPEC)
        for other in ({"role": "server"}, {"layer": "tls"}, {"workload": "crr"}, {"threads": 2}, {"rate": 5.0}):
            self.assertEqual(self.status(spec(connect="127.0.0.1:1", **other)), linerate.UNSUPPORTED, other)


if __name__ == "__main__":
    unittest.main()
