import ConformanceKit
import Crypto
import HubKit
import NIOCore
import SheafWire
import Synchronization
import Testing

@testable import SheafHubClient

/// How many bytes of contents pass in a second, in virtual time.
@Suite struct ContentPaceTests {
  /// Time that goes on when somebody waits.
  private final class VirtualTime: Sendable {
    private let state = Mutex((now: Duration.zero, sleeps: 0))

    var now: Duration { state.withLock(\.now) }
    var sleeps: Int { state.withLock(\.sleeps) }

    func pace(whenWaiting: @escaping @Sendable (Int) -> Void = { _ in }) -> ContentPace {
      ContentPace(
        time: .init(now: { self.now }) { duration in
          let sleeps = self.state.withLock { state in
            state.now += duration
            state.sleeps += 1
            return state.sleeps
          }
          whenWaiting(sleeps)
        })
    }
  }

  @Test func inNoSpanMorePassesThanTheRateAllows() async throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    for _ in 0..<20 {
      let time = VirtualTime()
      let (pace, rate) = (time.pace(), Int64.random(in: 16_384...10_000_000, using: &random))
      pace.rate = rate
      var passed: [(at: Double, bytes: Int)] = []
      for _ in 0..<60 {
        let bytes = Int.random(in: 0...(1 << Int.random(in: 0...22, using: &random)), using: &random)
        try await pace.take(bytes)
        passed.append((time.now / .seconds(1), bytes))
      }
      #expect(pace.passed == Int64(passed.reduce(0) { $0 + $1.bytes }), "seed \(seed)")
      // The most that passed in a span beyond what the rate allows for it, but for what passed last.
      var excess = 0.0
      for first in passed.indices {
        var bytes = 0
        for last in first..<passed.count {
          excess = max(excess, Double(bytes) - (passed[last].at - passed[first].at) * Double(rate))
          bytes += passed[last].bytes
        }
      }
      #expect(excess <= 1, "rate \(rate), seed \(seed)")
      // Nobody waits for longer than that, but for a millisecond.
      let needed = Double(passed.dropLast().reduce(0) { $0 + $1.bytes }) / Double(rate)
      #expect((passed.last?.at ?? 0) <= needed + 0.001 * Double(passed.count), "rate \(rate), seed \(seed)")
    }
  }

  @Test func withoutALimitNobodyWaits() async throws {
    let time = VirtualTime()
    let pace = time.pace()
    for _ in 0..<100 { try await pace.take(4 << 20) }
    #expect(time.sleeps == 0 && pace.passed == 400 << 20)
  }

  /// Whoever waits by a low rate does not wait for all of that when the rate is raised.
  @Test func anotherRateHoldsAtOnce() async throws {
    let time = VirtualTime()
    let other = Mutex<ContentPace?>(nil)
    let pace = time.pace { sleeps in
      if sleeps == 3 { other.withLock { $0?.rate = nil } }
    }
    other.withLock { $0 = pace }
    pace.rate = 16_384
    try await pace.take(4 << 20)
    try await pace.take(4 << 20)
    #expect(time.sleeps == 3 && time.now < .seconds(1), "\(time.now)")
    other.withLock { $0 = nil }
  }

  /// Everything that has contents goes by the pace: chunks, contents in sends, and what is fetched.
  @Test func contentsOfBothWaysArePaced() async throws {
    try await SecureHub.with { hub in
      let time = VirtualTime()
      let pace = time.pace()
      let client = DeviceClient(try await hub.device(), pace: pace)
      pace.rate = 100_000
      let bytes = ByteBuffer(repeating: 7, count: 300_000)
      let hash = try #require(ChunkHash(bytes: Array(SHA256.hash(data: bytes.readableBytesView))))
      try await client.upload(hash, bytes)
      #expect(pace.passed == 300_000)
      let send = Send.document("a", "small", serial: 1)
      _ = try await client.send([[send]], confirmed: 0)
      #expect(pace.passed == 300_005)
      let version = try #require(send.version?.id)
      try await client.contents([.init(item: send.item, version: version, offset: nil, length: nil)]) { _, _ in
      } end: { _, failure in
        #expect(failure == nil)
      }
      #expect(pace.passed == 300_010)
      #expect(time.now >= .seconds(3), "\(time.now)")
      await client.shutdown()
    }
  }
}
