"""What is kept of a machine, of its environment and of a command line."""

from importlib import metadata
from pathlib import Path

import pytest

import tracekit
from tracekit.capture import machine

SMI = """#!/bin/sh
case "$1" in
-q) cat <<END
<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <driver_version>580.95.05</driver_version>
  <cuda_version>13.0</cuda_version>
  <attached_gpus>2</attached_gpus>
  <gpu id="0000000F:01:00.0">
    <product_name>NVIDIA GB10</product_name>
    <uuid>GPU-11111111-2222-3333-4444-555555555555</uuid>
    <serial>1234567</serial>
    <clocks_event_reasons>
      <clocks_event_reason_gpu_idle>Not Active</clocks_event_reason_gpu_idle>
      <clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap>
    </clocks_event_reasons>
    <temperature><gpu_temp>48 C</gpu_temp></temperature>
    <gpu_power_readings>
      <instant_power_draw>11.65 W</instant_power_draw><current_power_limit>N/A</current_power_limit>
    </gpu_power_readings>
    <clocks><sm_clock>2418 MHz</sm_clock><mem_clock>N/A</mem_clock></clocks>
    <max_clocks><sm_clock>3003 MHz</sm_clock></max_clocks>
  </gpu>
  <gpu id="00000000:02:00.0">
    <product_name>NVIDIA A100</product_name>
    <clocks_throttle_reasons>
      <clocks_throttle_reason_hw_thermal_slowdown>Active</clocks_throttle_reason_hw_thermal_slowdown>
    </clocks_throttle_reasons>
    <power_readings><power_draw>60.5 W</power_draw><power_limit>400.00 W</power_limit></power_readings>
    <clocks><sm_clock>1410 MHz</sm_clock><mem_clock>1215 MHz</mem_clock></clocks>
  </gpu>
</nvidia_smi_log>
END
;;
*) echo 12.1; echo 8.0;;
esac
"""


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    program = folder / "nvidia-smi"
    program.write_text(text)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_gpus_are_told_with_their_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, SMI)
    found = machine.examine()
    assert (found.driver, found.cuda) == ("580.95.05", "13.0")
    assert found.gpus == [machine.Gpu("NVIDIA GB10", "12.1"), machine.Gpu("NVIDIA A100", "8.0")]
    assert found.before == machine.gpu_states() == [
        machine.GpuState(2418, 3003, None, 11.65, None, 48, ["sw_power_cap"]),
        machine.GpuState(1410, None, 1215, 60.5, 400, None, ["hw_thermal_slowdown"]),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["#!/bin/sh\necho no devices were found; exit 6\n", "#!/bin/sh\nexit 9\n"])
def test_a_driver_in_trouble_is_a_machine_without_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    stand_in(tmp_path, monkeypatch, text)
    assert machine.examine() == machine.Machine()


def test_without_a_driver_there_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.examine() == machine.Machine()
    assert machine.gpu_states() == []


def test_versions_are_those_of_installed_packages() -> None:
    found = machine.versions(of_packages=True)
    assert found["tracekit"] == tracekit.__version__
    assert all(found[name] == metadata.version(name) for name in found if name != "tracekit")
    assert machine.versions(of_packages=False) == {"tracekit": tracekit.__version__}


def test_only_variables_of_frameworks_are_kept_and_no_secret_among_them() -> None:
    kept = {"MLX_USE_CUDA_GRAPHS": "0", "CUDA_VISIBLE_DEVICES": "1", "GGML_CUDA_X": "1", "XLA_FLAGS": "a b"}
    left_out = {
        "HOME": "/home/x", "PATH": "/bin", "HF_TOKEN": "s", "VLLM_API_KEY": "s", "NCCL_SECRET": "s", "MLX_PASS": "s",
        "CUDA_MY_token": "s", "OLLAMA_HOST": "there", "MY_MLX_X": "1",
    }  # fmt: skip
    assert machine.kept_environment({**kept, **left_out}) == kept


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("serve --api-key abc=def== --x 1", "serve --api-key (not kept) --x 1"),
        ("serve --api-key=abc=def==", "serve --api-key=(not kept)"),
        ("serve --hf-token abc", "serve --hf-token (not kept)"),
        ("curl password=abc", "curl password=(not kept)"),
        ("bench --max-tokens 128 --tokens=4 --tokenizer t", "bench --max-tokens 128 --tokens=4 --tokenizer t"),
    ],
)
def test_secrets_of_a_command_line_are_not_kept(command: str, kept: str) -> None:
    assert " ".join(machine.without_secrets(command.split())) == kept


def test_values_of_secret_variables_are_not_kept() -> None:
    given = {"HF_TOKEN": "abc", "MLX_X": "1", "GGML_CUDA_DISABLE_GRAPHS": None}
    assert machine.without_secret_values(given) == {**given, "HF_TOKEN": "(not kept)"}
