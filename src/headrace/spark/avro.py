"""What a Spark session must have before it reads Avro: the `spark-avro` jar, and limits on what a record may claim.

Avro's Java reader believes a record that says "here come two billion bytes" and reserves them. One such record ends the
process, and after a restart does it again: so without the limits nothing is read at all.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from headrace.codec.json.rules import LARGEST_VALUE
from headrace.errors import ConfigError, MachineError, shown

LIMITS = tuple(f"org.apache.avro.limits.{what}.maxLength" for what in ("string", "bytes", "collectionItems"))
LIMITING = " ".join(f"-D{name}={LARGEST_VALUE}" for name in LIMITS)
"""For `spark.driver.extraJavaOptions` and `spark.executor.extraJavaOptions`."""

_READER = "org.apache.spark.sql.avro.AvroDataToCatalyst"


def need_avro(session: SparkSession) -> None:
    """Refuse a session that cannot read Avro, or not safely."""
    jvm = session.sparkContext._jvm
    if jvm is None:
        return
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        jvm.java.lang.Class.forName(_READER, False, loader)
    except Exception:
        hint = "Fetch the jars with `headrace kafka jars`, or add a spark-avro that fits your Spark to spark.jars."
        raise MachineError("no-avro", "Spark has no reader for Avro.", got=shown(_READER), hint=hint) from None
    for name in LIMITS:
        _limited(session, jvm.java.lang.System.getProperty(name), name)


def _limited(session: SparkSession, here: str | None, name: str) -> None:
    """Held to in the process that runs tasks: this one in local mode, elsewhere the executors."""
    context = session.sparkContext
    local = str(context.master).startswith("local")
    options = context.getConf().get("spark.executor.extraJavaOptions", "") or ""
    given = here if local else next((o.split("=")[1] for o in options.split() if o.startswith(f"-D{name}=")), None)
    if given is None or not given.isdigit() or int(given) > LARGEST_VALUE:
        where = "spark.driver.extraJavaOptions" if local else "spark.executor.extraJavaOptions"
        message = f"Without the Java option {name} one bad record can end the process."
        raise ConfigError("bad-setting", message, got=shown(given), hint=f"Add {LIMITING} to {where}.")
