import CFuse

extension Operations {
  /// Open directories.
  static func addDirectories(to table: inout fuse_lowlevel_ops) {
    table.opendir = { request, node, info in
      let call = IncomingRequest(request!)
      call.fileSystem.opendir(
        NodeID(node), flags: OpenFlags(info!), caller: call.caller,
        reply: OpenReply(request: call.pending("opendir")))
    }
    table.readdir = { request, node, size, offset, info in
      let call = IncomingRequest(request!)
      guard offset >= 0 else { return call.pending("readdir").fail(.invalidArgument) }
      call.fileSystem.readdir(
        NodeID(node), handle: FileHandle(info!), cookie: UInt64(bitPattern: Int64(offset)), caller: call.caller,
        reply: DirectoryReply(request: call.pending("readdir"), capacity: size))
    }
    table.readdirplus = { request, node, size, offset, info in
      let call = IncomingRequest(request!)
      guard offset >= 0 else { return call.pending("readdirplus").fail(.invalidArgument) }
      call.fileSystem.readdirplus(
        NodeID(node), handle: FileHandle(info!), cookie: UInt64(bitPattern: Int64(offset)), caller: call.caller,
        reply: DirectoryPlusReply(request: call.pending("readdirplus"), capacity: size))
    }
    table.releasedir = { request, node, info in
      let call = IncomingRequest(request!)
      call.fileSystem.releasedir(
        NodeID(node), handle: FileHandle(info!), caller: call.caller,
        reply: EmptyReply(request: call.pending("releasedir")))
    }
    table.fsyncdir = { request, node, dataOnly, info in
      let call = IncomingRequest(request!)
      call.fileSystem.fsyncdir(
        NodeID(node), handle: FileHandle(info!), dataOnly: dataOnly != 0, caller: call.caller,
        reply: EmptyReply(request: call.pending("fsyncdir")))
    }
  }
}
