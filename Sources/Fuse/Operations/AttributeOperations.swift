import CFuse

extension Operations {
  /// Attributes of files and of the file system, and extended ones.
  static func addAttributes(to table: inout fuse_lowlevel_ops) {
    table.getattr = { request, node, info in
      let call = IncomingRequest(request!)
      call.fileSystem.getattr(
        NodeID(node), handle: info.map { FileHandle($0) }, caller: call.caller,
        reply: AttributesReply(request: call.pending("getattr")))
    }
    table.setattr = { request, node, values, valid, info in
      let call = IncomingRequest(request!)
      guard valid & FUSE_SET_ATTR_SIZE == 0 || values!.pointee.st_size >= 0 else {
        return call.pending("setattr").fail(.invalidArgument)
      }
      call.fileSystem.setattr(
        NodeID(node), SetAttributes(values!.pointee, valid: valid, handle: info.map { FileHandle($0) }),
        caller: call.caller, reply: AttributesReply(request: call.pending("setattr")))
    }
    table.access = { request, node, mask in
      let call = IncomingRequest(request!)
      call.fileSystem.access(
        NodeID(node), AccessMode(rawValue: mask), caller: call.caller,
        reply: EmptyReply(request: call.pending("access")))
    }
    table.statfs = { request, node in
      let call = IncomingRequest(request!)
      call.fileSystem.statfs(
        NodeID(node), caller: call.caller, reply: StatFSReply(request: call.pending("statfs")))
    }
    table.setxattr = { request, node, name, value, size, flags in
      let call = IncomingRequest(request!)
      call.fileSystem.setxattr(
        NodeID(node), name: FileName(cString: name!), value: UnsafeRawBufferPointer(start: value, count: size),
        flags: XattrFlags(rawValue: flags), caller: call.caller,
        reply: EmptyReply(request: call.pending("setxattr")))
    }
    table.getxattr = { request, node, name, size in
      let call = IncomingRequest(request!)
      call.fileSystem.getxattr(
        NodeID(node), name: FileName(cString: name!), caller: call.caller,
        reply: XattrReply(request: call.pending("getxattr"), capacity: size))
    }
    table.listxattr = { request, node, size in
      let call = IncomingRequest(request!)
      call.fileSystem.listxattr(
        NodeID(node), caller: call.caller,
        reply: XattrListReply(request: call.pending("listxattr"), capacity: size))
    }
    table.removexattr = { request, node, name in
      let call = IncomingRequest(request!)
      call.fileSystem.removexattr(
        NodeID(node), name: FileName(cString: name!), caller: call.caller,
        reply: EmptyReply(request: call.pending("removexattr")))
    }
  }
}
