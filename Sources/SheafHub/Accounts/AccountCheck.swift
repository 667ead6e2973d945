import Foundation
import SheafHubStore
import SheafModel

extension Accounts {
  /// Checks the rows of accounts.
  ///
  /// - Returns: one line for each rule that a row breaks.
  func check() async throws -> [String] {
    try await database.read { connection in
      var findings: [String] = []
      var zones: Set<String> = []
      var handles: [String: String] = [:]
      for row in try connection.query("SELECT handle, zone FROM handles") {
        handles[try row.text(0)] = try row.text(1)
      }
      for row in try connection.query("SELECT zone, handle FROM accounts") {
        let (zone, handle) = (try row.text(0), try row.text(1))
        zones.insert(zone)
        if UUID(uuidString: zone)?.uuidString.lowercased() != zone { findings.append("\(zone): no id of a zone") }
        if (try? AccountHandle(handle)) == nil { findings.append("\(zone): \(handle.printable) is no handle") }
        if handles.removeValue(forKey: handle) != zone { findings.append("\(zone): its handle names another zone") }
        let rows = try connection.query("SELECT COUNT(*) FROM zones WHERE zone = $1", [.text(zone)])
        if try rows.first?.integer(0) != 1 { findings.append("\(zone): the account has no zone") }
      }
      for handle in handles.keys.sorted() { findings.append("\(handle.printable): names a zone that is not there") }
      var devices: Set<[String]> = []
      for row in try connection.query("SELECT zone, device, key FROM devices") {
        let (zone, device) = (try row.text(0), try row.text(1))
        devices.insert([zone, device])
        if !zones.contains(zone) { findings.append("\(zone): a device without an account") }
        if (try? DeviceKey(try row.blob(2))) == nil { findings.append("\(zone): the key of device \(device) is none") }
      }
      for row in try connection.query("SELECT zone, device, key FROM wipes") {
        let (zone, device) = (try row.text(0), try row.text(1))
        if !zones.contains(zone) { findings.append("\(zone): a removed device without an account") }
        if devices.contains([zone, device]) { findings.append("\(zone): device \(device) is there and removed") }
        if (try? DeviceKey(try row.blob(2))) == nil {
          findings.append("\(zone): the key of removed device \(device) is none")
        }
      }
      for row in try connection.query("SELECT zone, device FROM sessions") {
        if !devices.contains([try row.text(0), try row.text(1)]) {
          findings.append("\(try row.text(0)): a session without a device")
        }
      }
      for row in try connection.query("SELECT zone, device FROM collaboration_keys")
      where !devices.contains([try row.text(0), try row.text(1)]) {
        findings.append("\(try row.text(0)): a key stands for a device that is not there")
      }
      for row in try connection.query("SELECT zone FROM codes") where !zones.contains(try row.text(0)) {
        findings.append("\(try row.text(0)): a link without an account")
      }
      return findings
    }
  }
}
