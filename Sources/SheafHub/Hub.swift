import SheafWire
