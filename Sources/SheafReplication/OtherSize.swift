import SheafWire

/// The error for contents of another size than the hub told of their version. It concerns that item alone, and the hub
/// may be right when it is asked again.
struct OtherSize: Error {
  let version: WireID
}
