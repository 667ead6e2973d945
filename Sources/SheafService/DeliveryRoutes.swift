import Glibc
import Hummingbird
import SheafLibrary
import SheafModel
import Synchronization

extension LibraryAPI {
  /// `PUT /v1/sidecar`: a sidecar reports on its delivery, to the door at which it reads.
  func addReportRoutes(to routes: Routes) {
    routes.put("sidecar") { request, _ in
      sidecars.take(try await request.decoded(as: SidecarReport.self))
      return Response(status: .noContent)
    }
  }

  /// `GET /v1/metrics`: for Prometheus.
  func addMetricsRoutes(to routes: Routes) {
    routes.get("metrics") { _, _ in
      let (counts, last, holds) = try await call { (try $0.counts(), $0.lastEvent, $0.lockHolds) }
      let text = Metrics.text(
        counts, lastEvent: last, holds, sinks: sinks(at: last), streams: signals.count, wakeUps: signals.wakeUps)
      return Response(
        status: .ok, headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
        body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }
  }

  /// The status of all sinks, with the number of events by which each is behind the log.
  func sinks(at last: Int64) -> [SinkStatus] {
    sidecars.sinks.map { sink in
      var sink = sink
      sink.undelivered = max(0, last - sink.position)
      return sink
    }
  }
}

/// The latest reports of sidecars.
final class SidecarBoard: Sendable {
  /// Sidecars that are remembered.
  private static let limit = 16

  private let reports = Mutex<[SidecarReport]>([])

  /// Sinks of all sidecars that are still running.
  var sinks: [SinkStatus] {
    reports.withLock { reports in
      // Another user's process is there, though this one cannot signal to it.
      reports.removeAll { kill($0.pid, 0) != 0 && access("/proc/\($0.pid)", F_OK) != 0 }
      return reports.flatMap(\.sinks)
    }
  }

  func take(_ report: SidecarReport) {
    reports.withLock { reports in
      reports.removeAll { $0.pid == report.pid }
      reports.append(report)
      if reports.count > Self.limit { reports.removeFirst() }
    }
  }
}

/// Numbers in the text format of Prometheus, version 0.0.4.
enum Metrics {
  private struct Family {
    let name: String
    let type: String
    let help: String
    var samples: [(labels: String, value: Int64)]

    var text: String {
      var lines = "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
      for sample in samples { lines += "\(name)\(sample.labels) \(sample.value)\n" }
      return lines
    }
  }

  static func text(
    _ counts: LibraryCounts, lastEvent: Int64, _ holds: LockHolds, sinks: [SinkStatus], streams: Int, wakeUps: Int64
  ) -> String {
    func library(_ name: String, _ type: String, _ help: String, _ value: Int64) -> Family {
      Family(name: "sheaf_" + name, type: type, help: help, samples: [("", value)])
    }
    func lock(_ name: String, _ type: String, _ help: String, _ value: (LockHolds.Hold) -> Int64) -> Family {
      Family(
        name: "sheaf_lock_" + name, type: type, help: help,
        samples: holds.byOperation.sorted { $0.key < $1.key }.map { ("{operation=\"\($0.key)\"}", value($0.value)) })
    }
    func sink(_ name: String, _ type: String, _ help: String, _ value: (SinkStatus) -> Int64) -> Family {
      Family(
        name: "sheaf_sink_" + name, type: type, help: help,
        samples: sinks.map { ("{sink=\"\(escaped($0.name))\",kind=\"\(escaped($0.kind))\"}", value($0)) })
    }
    let families = [
      library("documents", "gauge", "Documents in the library.", Int64(counts.documents)),
      library("versions", "gauge", "Versions in the library.", Int64(counts.versions)),
      library("file_bytes", "gauge", "Bytes that the library's files take on the disk.", counts.fileBytes),
      library("available_bytes", "gauge", "Bytes that can still be written.", counts.availableBytes),
      library("events_total", "counter", "Events since the library was made.", lastEvent),
      library("event_streams", "gauge", "Streams of events that are being read.", Int64(streams)),
      library("event_stream_wakeups_total", "counter", "Times that news woke a stream.", wakeUps),
      lock("longest_hold_microseconds", "gauge", "Longest time for which an operation had all others wait.") {
        $0.longestNanoseconds / 1000
      },
      lock("long_holds_total", "counter", "Times that an operation had all others wait for more than 10 ms.") {
        $0.longCount
      },
      sink("position", "gauge", "Number of the last event that the sink is done with.") { $0.position },
      sink("lag", "gauge", "Events in the log after the sink's position.") { $0.undelivered ?? 0 },
      sink("deliveries_total", "counter", "Events that arrived.") { $0.delivered },
      sink("failures_total", "counter", "Attempts that failed.") { $0.failed },
      sink("dead_letters", "gauge", "Events that were given up and can be sent again.") { $0.deadLetters },
      sink("disabled", "gauge", "1 where no attempts are made until a person resumes the sink.") {
        $0.disabled == nil ? 0 : 1
      },
    ]
    return families.map(\.text).joined()
  }

  /// A label's value between quotation marks.
  private static func escaped(_ value: String) -> String {
    value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
  }
}
