import SheafLibrary
import SheafWire
import Testing

@testable import SheafReplication

/// How long a replica waits after steps that were not possible.
@Suite struct ImpossibleStepsTests {
  @Test func nothingWaitsForStepsThatChangesOvertook() {
    var impossible = ImpossibleSteps()
    for _ in 0..<ImpossibleSteps.limit {
      #expect(impossible.pause(after: .destroy(WireID())) == ImpossibleSteps.pauses.first)
    }
  }

  @Test func whatIsPlannedAnewAsItWasIsTriedEverMoreRarely() {
    var impossible = ImpossibleSteps()
    let steps = (0..<3).map { _ in ReplicaStep.destroy(WireID()) }
    var pauses: [Double] = []
    for _ in 0..<10 { pauses += steps.map { impossible.pause(after: $0) } }
    #expect(pauses == pauses.sorted())
    #expect(pauses.prefix(3).allSatisfy { $0 == ImpossibleSteps.pauses.first })
    #expect(pauses.last == ImpossibleSteps.pauses.longest)
  }

  @Test func moreStepsThanAreRememberedAreTriedEverMoreRarely() {
    var impossible = ImpossibleSteps()
    for _ in 0..<ImpossibleSteps.limit + 20 { _ = impossible.pause(after: .destroy(WireID())) }
    #expect(impossible.pause(after: .destroy(WireID())) == ImpossibleSteps.pauses.longest)
  }
}
