"""kfd.py SDMA COLLECTIVE_PERF: the benchmark through the kernel driver's device, on the software node.

All collectives in all variants, a few sizes, every byte checked; what the CSV says is read back."""
import csv
import pathlib
import subprocess
import sys
import tempfile

# Ways of a collective, prelaunched and not; sizes from 999 bytes, times 5.
WAYS = {"all_gather": 6, "all_to_all": 6, "broadcast": 6, "scatter": 4, "gather": 4}
SIZES = ["999", "4995", "24975"]


def main(sdma, perf):
    with tempfile.TemporaryDirectory() as folder:
        for collective, ways in WAYS.items():
            table = pathlib.Path(folder, collective + ".csv")
            done = subprocess.run(
                [sdma, "emulate", "--gpus=3", "--", perf, "--device=kfd", "--collective=" + collective, "-g", "3",
                 "-b", SIZES[0], "-e", SIZES[-1], "-f", "5", "-n", "2", "-w", "1", "-c", "1", "--variant=all",
                 "--csv=" + str(table)], capture_output=True, text=True, timeout=60)
            said = f"{collective}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
            assert done.returncode == 0 and "# Wrong elements    : 0 OK" in done.stdout, said
            with table.open(encoding="utf-8", newline="") as text:
                rows = list(csv.DictReader(text))
            assert len(rows) == ways * len(SIZES), said
            assert len({(r["size"], r["variant"]) for r in rows}) == len(rows), said
            for r in rows:
                assert (r["collective"], r["device"], r["gpus"], r["wrong"]) == (collective, "kfd", "3", "0"), (r, said)
                assert r["size"] in SIZES and float(r["min_us"]) > 0 and float(r["algbw_gbps"]) > 0, (r, said)


main(*sys.argv[1:])
