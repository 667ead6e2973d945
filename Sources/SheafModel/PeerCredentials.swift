/// The process at the other end of a Unix socket: `struct ucred` of unix(7).
package struct PeerCredentials: Sendable {
  package var pid: Int32 = 0
  package var uid: UInt32 = 0
  package var gid: UInt32 = 0

  package init() {}
}
