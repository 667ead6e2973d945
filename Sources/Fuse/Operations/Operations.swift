import CFuse

/// The bridge from libfuse's callbacks to ``FileSystem``.
///
/// Some callbacks stay unset: bmap and poll (libfuse answers ENOSYS once, and the kernel asks no more), write_buf (it
/// would turn splicing on) and destroy (``Session`` calls it at a time of its own).
enum Operations {
  static func table() -> fuse_lowlevel_ops {
    var table = fuse_lowlevel_ops()
    table.`init` = { userdata, connection in
      guard let userdata, let connection else { return }
      IncomingRequest.session(userdata).begin(&connection.pointee)
    }
    addNames(to: &table)
    addAttributes(to: &table)
    addFiles(to: &table)
    addDirectories(to: &table)
    addLocks(to: &table)
    return table
  }
}

/// A request as libfuse hands it over.
struct IncomingRequest: ~Copyable {
  let request: fuse_req_t
  private let session: Session

  init(_ request: fuse_req_t) {
    self.request = request
    session = Self.session(fuse_req_userdata(request))
  }

  /// The session of a userdata pointer. It is alive: requests come only while ``Session/run(threads:)`` holds it.
  static func session(_ userdata: UnsafeMutableRawPointer) -> Session {
    let context = userdata.assumingMemoryBound(to: cfuse_context.self)
    return Unmanaged<Session>.fromOpaque(context.pointee.handler).takeUnretainedValue()
  }

  var fileSystem: any FileSystem { session.handler }

  var caller: RequestContext { RequestContext(request) }

  /// The duty to answer; once for each request.
  func pending(_ operation: StaticString) -> PendingRequest {
    PendingRequest(request, device: session.channel, operation: operation)
  }
}

extension NodeID {
  init(_ number: fuse_ino_t) {
    self.init(rawValue: number)
  }
}

extension FileHandle {
  init(_ info: UnsafeMutablePointer<fuse_file_info>) {
    self.init(rawValue: info.pointee.fh)
  }
}

extension OpenFlags {
  init(_ info: UnsafeMutablePointer<fuse_file_info>) {
    self.init(rawValue: info.pointee.flags)
  }
}
