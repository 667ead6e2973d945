import CFuse

extension Operations {
  /// Lookup, and the operations that change names.
  static func addNames(to table: inout fuse_lowlevel_ops) {
    table.lookup = { request, parent, name in
      let call = IncomingRequest(request!)
      call.fileSystem.lookup(
        FileName(cString: name!), in: NodeID(parent), caller: call.caller,
        reply: EntryReply(request: call.pending("lookup")))
    }
    table.forget = { request, node, count in
      let call = IncomingRequest(request!)
      call.fileSystem.forget([Forgotten(node: NodeID(node), count: count)])
      fuse_reply_none(request)
    }
    table.forget_multi = { request, count, nodes in
      let call = IncomingRequest(request!)
      let batch = UnsafeBufferPointer(start: nodes, count: count)
      call.fileSystem.forget(batch.map { Forgotten(node: NodeID($0.ino), count: $0.nlookup) })
      fuse_reply_none(request)
    }
    table.mknod = { request, parent, name, mode, device in
      let call = IncomingRequest(request!)
      call.fileSystem.mknod(
        FileName(cString: name!), in: NodeID(parent), mode: mode, device: UInt64(device), caller: call.caller,
        reply: EntryReply(request: call.pending("mknod")))
    }
    table.mkdir = { request, parent, name, mode in
      let call = IncomingRequest(request!)
      call.fileSystem.mkdir(
        FileName(cString: name!), in: NodeID(parent), mode: mode, caller: call.caller,
        reply: EntryReply(request: call.pending("mkdir")))
    }
    table.unlink = { request, parent, name in
      let call = IncomingRequest(request!)
      call.fileSystem.unlink(
        FileName(cString: name!), in: NodeID(parent), caller: call.caller,
        reply: EmptyReply(request: call.pending("unlink")))
    }
    table.rmdir = { request, parent, name in
      let call = IncomingRequest(request!)
      call.fileSystem.rmdir(
        FileName(cString: name!), in: NodeID(parent), caller: call.caller,
        reply: EmptyReply(request: call.pending("rmdir")))
    }
    table.symlink = { request, target, parent, name in
      let call = IncomingRequest(request!)
      call.fileSystem.symlink(
        FileName(cString: name!), in: NodeID(parent), target: FileName(cString: target!).bytes, caller: call.caller,
        reply: EntryReply(request: call.pending("symlink")))
    }
    table.rename = { request, parent, name, newParent, newName, flags in
      let call = IncomingRequest(request!)
      call.fileSystem.rename(
        FileName(cString: name!), in: NodeID(parent), to: FileName(cString: newName!), in: NodeID(newParent),
        flags: RenameFlags(rawValue: flags), caller: call.caller,
        reply: EmptyReply(request: call.pending("rename")))
    }
    table.link = { request, node, newParent, newName in
      let call = IncomingRequest(request!)
      call.fileSystem.link(
        NodeID(node), as: FileName(cString: newName!), in: NodeID(newParent), caller: call.caller,
        reply: EntryReply(request: call.pending("link")))
    }
    table.readlink = { request, node in
      let call = IncomingRequest(request!)
      call.fileSystem.readlink(
        NodeID(node), caller: call.caller, reply: LinkReply(request: call.pending("readlink")))
    }
  }
}
