import CFuse

/// The kernel's offer at the start of a connection.
///
/// The corresponding C type is `struct fuse_conn_info`.
package struct ConnectionInfo: Hashable, Sendable {
  package let protocolMajor: UInt32
  package let protocolMinor: UInt32
  package let capabilities: Capabilities
  /// The largest write that libfuse's buffers can take.
  package let maximumWrite: UInt32
  package let maximumReadahead: UInt32
}

extension ConnectionInfo {
  init(_ connection: fuse_conn_info, offered: UInt64) {
    protocolMajor = connection.proto_major
    protocolMinor = connection.proto_minor
    var capabilities = Capabilities(rawValue: connection.capable)
    if offered & cfuse_init_handle_killpriv_v2 != 0 { capabilities.insert(.handleKillprivV2) }
    if offered & cfuse_init_direct_io_allow_mmap != 0 { capabilities.insert(.directIOMappings) }
    self.capabilities = capabilities
    maximumWrite = connection.max_write
    maximumReadahead = connection.max_readahead
  }
}

/// The abilities of a kernel that a file system may choose.
///
/// The corresponding C constants are `FUSE_CAP_*`.
package struct Capabilities: OptionSet, Hashable, Sendable {
  package let rawValue: UInt32

  package init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  package static let asyncRead = Capabilities(rawValue: 1 << 0)
  package static let posixLocks = Capabilities(rawValue: 1 << 1)
  package static let atomicTruncate = Capabilities(rawValue: 1 << 3)
  package static let exportSupport = Capabilities(rawValue: 1 << 4)
  package static let dontMask = Capabilities(rawValue: 1 << 6)
  package static let flockLocks = Capabilities(rawValue: 1 << 10)
  package static let ioctlDirectory = Capabilities(rawValue: 1 << 11)
  package static let autoInvalidateData = Capabilities(rawValue: 1 << 12)
  package static let readdirplus = Capabilities(rawValue: 1 << 13)
  package static let readdirplusAuto = Capabilities(rawValue: 1 << 14)
  package static let asyncDirectIO = Capabilities(rawValue: 1 << 15)
  package static let writebackCache = Capabilities(rawValue: 1 << 16)
  package static let parallelDirectoryOperations = Capabilities(rawValue: 1 << 18)
  package static let posixACL = Capabilities(rawValue: 1 << 19)
  package static let handleKillpriv = Capabilities(rawValue: 1 << 20)
  package static let cacheSymlinks = Capabilities(rawValue: 1 << 23)
  package static let explicitInvalidateData = Capabilities(rawValue: 1 << 25)
  /// `FUSE_DIRECT_IO_ALLOW_MMAP` of the kernel; libfuse 3.14 has no constant for it, later ones this.
  package static let directIOMappings = Capabilities(rawValue: 1 << 28)
  /// `FUSE_HANDLE_KILLPRIV_V2` of the kernel; libfuse 3.14 has no constant for it, and bit 31 no other meaning.
  package static let handleKillprivV2 = Capabilities(rawValue: 1 << 31)
}
