import SheafModel
import Testing

@testable import SheafCommand

/// What a line of progress tells.
struct SyncProgressTests {
  private func status(
    _ unsent: Int64, _ unfetched: Int64, _ moved: Int64, _ state: ConnectionStatus.State = .connected
  ) throws -> ConnectionStatus {
    ConnectionStatus(
      account: try AccountHandle("alice@hub.example"), hub: "https://hub.example", state: state,
      since: Timestamp(seconds: 1), problem: nil, unsent: unsent, unfetched: unfetched, isSettled: false,
      isPaused: false, limit: nil, movedBytes: moved, notices: [])
  }

  @Test func itTellsWhatIsDoneAndLeft() throws {
    var progress = SyncProgress(try status(10, 20, 5_000))
    #expect(progress.text(try status(10, 20, 5_000)) == "10 to send, 20 to fetch; 0 done, 0 bytes")
    #expect(progress.text(try status(4, 12, 1_205_000)) == "4 to send, 12 to fetch; 14 done, 1.2 MB")
    // What comes meanwhile takes nothing away from what is done.
    #expect(progress.text(try status(4, 100, 1_205_000)) == "4 to send, 100 to fetch; 14 done, 1.2 MB")
    let away = progress.text(try status(4, 99, 1_205_000, .disconnected))
    #expect(away == "4 to send, 99 to fetch; 15 done, 1.2 MB; the hub is not reached")
    // Another process counts anew.
    #expect(progress.text(try status(0, 0, 0)) == "0 to send, 0 to fetch; 118 done, 0 bytes")
  }
}
