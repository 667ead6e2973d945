import ArgumentParser
import SheafHub
import SheafModel

struct DeviceCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "device", abstract: "List and remove the machines of an account.",
    subcommands: [List.self, Remove.self])

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List the machines of an account, the oldest first.")

    @OptionGroup var hub: HubOption
    @Argument(help: "The account's handle.") var handle: AccountHandle
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
      try await hub.withHub { open in
        let accounts = open.hub.accounts
        let devices = try await accounts.devices(of: try await accounts.zone(of: handle))
        if json { return try JSONOutput.print(devices) }
        for device in devices {
          let wipe = device.wipe.map { $0.done.map { "\twiped \($0)" } ?? "\tto be wiped" } ?? ""
          print(
            "\(device.id)\t\(device.name.escapingControls)\tadded \(device.added)\tseen \(device.seen ?? "never")\(wipe)"
          )
        }
      }
    }
  }

  struct Remove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Remove a machine: its sessions and streams end within a second.",
      discussion: "Links for further machines of the account that nobody has used end, too: the machine may have one.")

    @OptionGroup var hub: HubOption
    @Argument(help: "The account's handle.") var handle: AccountHandle
    @Argument(help: "The machine's id, as device list tells it.") var device: String
    @Flag(help: "Has it destroy what it has of the account, once it reaches the hub.") var wipe = false

    func run() async throws {
      try await hub.withHub { open in
        let accounts = open.hub.accounts
        let ended = try await accounts.removeDevice(
          device.lowercased(), of: try await accounts.zone(of: handle), wipes: wipe)
        print(
          wipe
            ? "Removed the machine. It destroys what it has of \(handle) once it reaches the hub."
            : "Removed the machine. What is on it stays there.")
        if ended > 0 { print(AccountCommand.Links.ended(ended)) }
      }
    }
  }
}
