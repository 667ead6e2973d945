import Glibc
import Testing

@testable import SheafReplication

@Suite struct ReplicaThreadTests {
  private static func niceness() -> CInt { getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0) }

  /// Programs that use a mount come first, and what serves them is as it was.
  @Test func theyGiveWayAndNobodyElseDoes() async throws {
    let own = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(getpid()))
    let threads = ReplicaThreads(count: 2)
    for _ in 0..<4 { #expect(try await threads.run { Self.niceness() } == min(19, own + 10)) }
    #expect(getpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(getpid())) == own)
    try await threads.shutDown()
  }
}
